package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// readMisses reads why targets are missed: the text under each "## metric metric ..."
// heading, by metric. Whatever stands before the first heading is for its readers.
// A heading that names no target is an error, so that none outlives a change of names.
func readMisses(path string) (map[string]string, error) {
	reasons := map[string]string{}
	if path == "" {
		return reasons, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, part := range strings.Split("\n"+string(b), "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		text = strings.Join(strings.Fields(text), " ")
		for _, metric := range strings.Fields(heading) {
			if !slices.ContainsFunc(targets, func(t target) bool { return t.metric == metric }) {
				return nil, fmt.Errorf("%s: %q is no figure with a target", path, metric)
			}
			if reasons[metric] != "" {
				return nil, fmt.Errorf("%s: %q is explained twice", path, metric)
			}
			reasons[metric] = text
		}
	}
	return reasons, nil
}
