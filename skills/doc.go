// Package skills serves agent skills: the extension io.modelcontextprotocol/skills.
// A skill is a directory with a SKILL.md, which tells a model how to do something, and the files that
// it refers to.
//
//	//go:embed skills
//	var files embed.FS
//
//	tree, err := fs.Sub(files, "skills")
//	if err != nil {
//		return err
//	}
//	err = skills.Enable(s, tree, nil)
//
// Every directory of the tree that holds a SKILL.md is a skill; its name, in the YAML
// between two lines of three hyphens at the top, is that of the directory. Clients list skills with
// skills/list, look one up with skills/get, and read the files of either as resources:
//
//	skill://pdf-processing/SKILL.md
//	skill://pdf-processing/references/forms.md
//
// Skills on a disk are served from a root, os.OpenRoot(dir) and its FS method: no
// link leads out of it, as links do out of an os.DirFS. What changes there is noticed
// when a client asks next.
//
// # The way of a request
//
// A scan (scan.go) makes a catalog (catalog.go) of the tree: skills, files and
// directories by their URIs, digests computed. Requests (method.go, read.go) are
// answered from the newest catalog. A frontmatter (frontmatter.go) becomes JSON by
// the core schema of YAML 1.2 (yaml.go).
//
// # Concurrency
//
// All functions may be called concurrently. The tree is scanned by one request at a time;
// others that wait for it can be cancelled.
//
// # Guarantees
//
//   - What an entry lists can be read; of the tree nothing else can.
//   - A digest and a size are those of bytes that were read together.
//   - A skill that breaks a rule of the format or a limit is not served.
//   - What the server's resource filter hides is hidden here as well.
//
// It is not guaranteed that files stay as an entry describes them: clients
// compare what they read with the digest, and ask again when it differs.
//
// Specification: extension io.modelcontextprotocol/skills, and the format of agent skills.
package skills
