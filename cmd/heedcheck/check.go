package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
)

// check tries one server and reports.
func check(ctx context.Context, o *options, stdout, stderr io.Writer) int {
	t, shut := o.target()
	defer shut()
	began := time.Now()
	printed := &printer{w: stdout, verbose: o.verbose}
	plan := transporttest.Plan{Settings: o.settings, Rules: o.rules, Parallel: o.parallel}
	if !o.json {
		plan.Report = printed.verdict
	}
	out := transporttest.Check(ctx, t, plan)
	r := newReport(o.name(), out, time.Since(began))
	if o.json {
		if err := r.writeJSON(stdout); err != nil {
			return fail(stderr, err)
		}
	} else {
		printed.end(out, r)
	}
	if o.junit != "" {
		if err := writeFile(o.junit, r.writeJUnit); err != nil {
			return fail(stderr, err)
		}
	}
	return r.status()
}

// name says which server is tried.
func (o *options) name() string {
	if o.url != "" {
		return o.url
	}
	return fmt.Sprint(o.command)
}

func writeFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	return write(file)
}
