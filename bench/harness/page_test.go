package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run is a result in which Heed costs cpu and every other server 10.
func run(cpu float64) *results {
	x := &results{Servers: []string{floorServer, heedServer, sdkServer}, Vals: map[string]map[string][]float64{}, Rounds: map[string]map[string][]int{}, Started: "2026-01-02T03:04:05Z"}
	for round := range 3 {
		x.add("pipe64_cpu_us", floorServer, round, 10)
		x.add("pipe64_cpu_us", heedServer, round, cpu)
		x.add("pipe64_cpu_us", sdkServer, round, 1000)
	}
	for _, n := range []int{1, 10, 100} {
		x.grow("growth-hooks", heedServer, n, 5/float64(n))
		x.grow("growth-hooks", floorServer, n, 7)
	}
	return x
}

func TestATargetIsMetOrMissedByItsMedians(t *testing.T) {
	for _, c := range []struct {
		cpu float64
		met bool
	}{{9.9, true}, {10, true}, {10.1, false}} {
		v := judge(run(c.cpu), map[string]string{"pipe64_cpu_us": "because"})
		if len(v) != 1 || v[0].Met != c.met {
			t.Errorf("at %v: %+v", c.cpu, v)
		}
		if want := map[bool]string{true: "", false: "because"}[c.met]; v[0].Reason != want {
			t.Errorf("at %v the reason is %q", c.cpu, v[0].Reason)
		}
	}
}

func TestThePageSaysWhatWasMissedAndWhy(t *testing.T) {
	got := page(run(11), run(12), map[string]string{"pipe64_cpu_us": "It is slow."}, "images")
	for _, want := range []string{
		"---\ntitle: Performance\norder: 80\n---\n",
		"0 of 1 figures",
		"| stdio, 64 outstanding, CPU per call | 11.0 µs | **1.10 (≤ 1)** | – (≤ 0.22) | 0.011 (≤ 0.050) |",
		"- **stdio, 64 outstanding, CPU per call.** It is slow.",
		"(images/growth-hooks.svg)",
		"| Heed | 5 | 0.50 | 0.050 | – | -1.00 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestTheExponentIsThatOfThePowerLaw(t *testing.T) {
	for _, k := range []float64{-1, 0, .5, 2} {
		var points []point
		for _, n := range []int{1, 10, 100, 1000} {
			v := 3 * math.Pow(float64(n), k)
			points = append(points, point{n, []float64{v / 2, v, v * 9}})
		}
		if got := exponent(points); math.Abs(got-k) > 1e-9 {
			t.Errorf("%v, want %v", got, k)
		}
	}
	if got := exponent([]point{{1, []float64{2}}}); !math.IsNaN(got) {
		t.Errorf("one point has the exponent %v", got)
	}
}

func TestAChartIsWellFormed(t *testing.T) {
	for i := range growths {
		svg := chart(&growths[i], run(1).Growth["growth-hooks"], []string{floorServer, heedServer})
		d := xml.NewDecoder(strings.NewReader(svg))
		lines := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
				lines++
			}
		}
		if lines != 2 {
			t.Errorf("%d lines in %s", lines, svg)
		}
	}
}

func TestReasonsNameFiguresThatExist(t *testing.T) {
	reasons, err := readMisses("../misses.md")
	if err != nil {
		t.Fatal(err)
	}
	for metric, reason := range reasons {
		if reason == "" {
			t.Errorf("%s has no reason", metric)
		}
	}
	for _, bad := range []string{"## no_such_figure\ntext\n", "## startup_ms\na\n## startup_ms\nb\n"} {
		path := filepath.Join(t.TempDir(), "misses.md")
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readMisses(path); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
