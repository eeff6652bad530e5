package schema

// Slow is Prepare without the fast path, to compare the two.
func (s *Schema) Slow(args []byte) ([]byte, error) {
	if len(args) == 0 {
		args = emptyObject
	}
	return s.check(args, s.plan)
}

// SlowValidate is Validate without the fast path.
func (s *Schema) SlowValidate(v []byte) error {
	_, err := s.check(v, nil)
	return err
}

// Fast says that the schema has a fast path.
func (s *Schema) Fast() bool { return s.flat != nil }
