package skills

// Frontmatter is the frontmatter of a SKILL.md as an entry has it.
func Frontmatter(file []byte) (string, error) {
	f, err := parseFrontmatter(file)
	if err != nil {
		return "", err
	}
	return string(f.raw), nil
}
