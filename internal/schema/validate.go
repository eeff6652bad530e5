package schema

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var emptyObject = []byte("{}")

// Prepare adds the schema's defaults to args and validates the result. It returns args itself when there was
// nothing to add, and never changes it. Empty args mean {}.
//
// Defaults are added for absent properties, at the root and in objects and array elements that are present; a
// default is not itself completed. Defaults in branches such as anyOf are not added. The error is a *ValidationError.
// A schema that accepts everything does not look at args at all.
func (s *Schema) Prepare(args []byte) ([]byte, error) {
	if len(args) == 0 {
		args = emptyObject
	}
	if s.everything {
		return args, nil
	}
	if s.flat != nil && s.flat.steps+len(args) <= s.steps {
		if out, ok := s.flat.prepare(args); ok {
			return out, nil
		}
	}
	return s.check(args, s.plan)
}

// Validate checks that v conforms. It adds nothing. The error is a *ValidationError.
func (s *Schema) Validate(v []byte) error {
	if s.everything {
		return nil
	}
	if s.flat != nil && s.flat.steps+len(v) <= s.steps {
		if _, _, ok := s.flat.accept(v, 0); ok {
			return nil
		}
	}
	_, err := s.check(v, nil)
	return err
}

func (s *Schema) check(raw []byte, pl *plan) ([]byte, error) {
	v, p, err := parse(raw, pl, maxValueDepth)
	if err != nil {
		return nil, refused(err)
	}
	if !s.graph.affordable(s.root, v, len(raw), s.steps) {
		return nil, problem("", "is too large to be validated against this schema")
	}
	if err := s.run(v); err != nil {
		return nil, err
	}
	return p.completed(), nil
}

// run asks the engine. A panic in it counts as a refusal, never as acceptance.
func (s *Schema) run(v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = problem("", "cannot be validated: "+plainText(fmt.Sprint(r)))
		}
	}()
	err = s.root.Validate(v)
	var details *jsonschema.ValidationError
	if errors.As(err, &details) {
		return explain(details, v, s.graph)
	}
	return err
}

func refused(err error) *ValidationError {
	var ve *valueError
	if errors.As(err, &ve) {
		return problem(ve.path, ve.message)
	}
	return problem("", err.Error())
}
