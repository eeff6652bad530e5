package soak_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	tolerance    = 0.10 // of the live heap: growth that is taken for noise
	mostOfSpread = 3.0  // standard deviations of the samples around the line
)

// sample is one look at the process under load.
type sample struct {
	at         time.Duration
	heap       float64 // live, in MiB, after a collection
	goroutines int
	p50, p99   time.Duration
	calls      int
}

// slope fits a line through the live heap by least squares. It returns the growth over the
// whole run and the standard deviation of what the line leaves over, in MiB.
func slope(samples []sample) (growth, noise float64) {
	n := float64(len(samples))
	var mx, my float64
	for _, s := range samples {
		mx += s.at.Seconds() / n
		my += s.heap / n
	}
	var xy, xx float64
	for _, s := range samples {
		xy += (s.at.Seconds() - mx) * (s.heap - my)
		xx += (s.at.Seconds() - mx) * (s.at.Seconds() - mx)
	}
	k := xy / xx
	for _, s := range samples {
		d := s.heap - my - k*(s.at.Seconds()-mx)
		noise += d * d / n
	}
	return k * (samples[len(samples)-1].at - samples[0].at).Seconds(), math.Sqrt(noise)
}

// A trend is what the samples say about memory, in MiB.
type trend struct {
	mean   float64
	growth float64 // of the fitted line, over the whole run
	noise  float64 // standard deviation around it
}

func trendOf(samples []sample) (t trend) {
	t.growth, t.noise = slope(samples)
	for _, s := range samples {
		t.mean += s.heap / float64(len(samples))
	}
	return t
}

// grows tells whether memory grows by more than noise explains.
func (t trend) grows() bool { return t.growth > max(mostOfSpread*t.noise, tolerance*t.mean) }

// A heap that goes up and down is no fault, and one that leaks is found: at a hundred bytes for each of the
// two thousand things a second that a run does, in ten minutes.
func TestTrendTellsALeakFromNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	run := func(leak float64) trend {
		var samples []sample
		for at := warmUp; at < 10*time.Minute; at += sampleEvery {
			heap := 65 + 12*random.NormFloat64() + 8*math.Sin(at.Minutes()) + leak*2000*at.Seconds()/(1<<20)
			samples = append(samples, sample{at: at, heap: heap})
		}
		return trendOf(samples)
	}
	for range 100 {
		flat, leaks := run(0), run(100)
		assert.False(t, flat.grows(), "%+v", flat)
		assert.True(t, leaks.grows(), "%+v", leaks)
		assert.InDelta(t, 100*2000*570.0/(1<<20), leaks.growth, 20)
	}
}
