package wire

import (
	"crypto/sha256"
	"time"
)

// Slowness tells how many times longer work takes now than it would if this machine had
// nothing else to do: 1 on an idle one, and never more than [MostSlowness]. It takes a
// twentieth of a second of computing to find out.
//
// Limits of time that are meant for an idle machine are to be multiplied by it, or a
// server is blamed for what its neighbours do.
func Slowness() float64 {
	const enough = 50 * time.Millisecond // of computing, so that others get their turns meanwhile
	var piece [64 << 10]byte
	var least time.Duration // that a piece takes: nothing came between
	began := time.Now()
	n := 0
	for at := began; least*time.Duration(n) < enough; n++ {
		sum := sha256.Sum256(piece[:])
		copy(piece[:], sum[:]) // so that each piece has to be computed
		now := time.Now()
		if took := now.Sub(at); n == 0 || took < least {
			least = took
		}
		if least <= 0 {
			return 1 // a clock that stands still, as in a test's bubble
		}
		at = now
	}
	ratio := float64(time.Since(began)) / float64(least*time.Duration(n))
	return min(max(ratio, 1), MostSlowness)
}

// MostSlowness bounds Slowness, and so what limits are stretched by.
const MostSlowness = 12

// Patience is how long something may take that has a limit on an idle machine. It is asked
// when the limit has passed: Next says how much longer to wait, 0 when that is enough.
// One goroutine uses it.
type Patience struct {
	Limit time.Duration // set before the first Next

	waited time.Duration
}

// Next is called when the limit, or what Next has returned last, has passed.
func (p *Patience) Next() time.Duration {
	const shortest = 100 * time.Millisecond // finding out takes as long as that itself
	if p.Limit < shortest {
		return 0
	}
	if p.waited == 0 {
		p.waited = p.Limit
	}
	more := time.Duration(Slowness()*float64(p.Limit)) - p.waited
	if more < p.Limit/4 {
		return 0 // noise
	}
	p.waited += more
	return more
}
