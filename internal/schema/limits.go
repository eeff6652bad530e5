package schema

import "time"

// Limits bounds what a schema may cost. The zero value of a field, and a nil *Limits, mean the default.
type Limits struct {
	// Depth is how deep arrays and objects may nest in the schema document. Default 64.
	Depth int
	// Subschemas is how many objects and booleans the schema document may hold. Every subschema is one of
	// these, so it bounds their number. Default 2000.
	Subschemas int
	// Bytes is the size of the schema document. Default 256 KiB.
	Bytes int
	// Time bounds one validation. The engine cannot be interrupted, so the bound is kept by counting the
	// steps a validation would take before it starts, at [stepTime] each. Default 250 ms.
	Time time.Duration
}

const (
	defaultDepth      = 64
	defaultSubschemas = 2000
	defaultBytes      = 256 << 10
	defaultTime       = 250 * time.Millisecond

	// stepTime is what one step (one subschema applied to one value) costs on slow hardware.
	stepTime = 250 * time.Nanosecond

	maxValueDepth      = 256       // nesting of a validated value
	maxNumberLength    = 512       // characters of one number
	maxExponent        = 1000      // a larger one costs megabytes once it is computed with exactly
	maxPattern         = 1000      // characters of one regular expression
	maxPatternSteps    = 5000      // instructions of one compiled regular expression
	maxAllPatternSteps = 100_000   // instructions of all regular expressions of a schema
	maxInPlace         = 10_000    // subschemas applied to one and the same value
	maxPaths           = 1_000_000 // where counting paths through a schema stops
)

func (l *Limits) depth() int {
	if l == nil || l.Depth <= 0 {
		return defaultDepth
	}
	return l.Depth
}

func (l *Limits) subschemas() int {
	if l == nil || l.Subschemas <= 0 {
		return defaultSubschemas
	}
	return l.Subschemas
}

func (l *Limits) bytes() int {
	if l == nil || l.Bytes <= 0 {
		return defaultBytes
	}
	return l.Bytes
}

func (l *Limits) steps() int {
	if l == nil || l.Time <= 0 {
		return int(defaultTime / stepTime)
	}
	return max(1, int(min(l.Time/stepTime, 1<<40)))
}
