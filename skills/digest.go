package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// settled is how long a file must have been left alone for its time and size to tell
// that it has not changed since: the clocks of file systems tick slowly, and two writes
// between two ticks look like one.
const settled = 2 * time.Second

// digest is what one file's bytes hash to.
type digest struct {
	text string // sha256:…
	size int64  // of what was hashed
}

// known is what is known of a file that had this size and time.
type known struct {
	size     int64
	modified time.Time
	read     time.Time // when it was
	round    int       // of the scan that has read it
	digest   *digest   // nil: not read yet
	front    *frontmatter
	wrong    error // why there is no front; nil with front nil: not asked for yet
}

// digests remembers what was computed of files, from scan to scan (K3). It is used by
// one scan at a time.
type digests struct {
	files map[string]*known // by path
	round int               // counts scans
}

// lookup returns what is known of a file as it is now; nothing if it may have changed.
func (d *digests) lookup(name string, info fs.FileInfo) *known {
	k := d.files[name]
	if k != nil && k.round == d.round {
		return k
	}
	if k == nil || k.size != info.Size() || !k.modified.Equal(info.ModTime()) || k.read.Sub(k.modified) < settled {
		k = &known{size: info.Size(), modified: info.ModTime(), read: time.Now(), round: d.round}
		d.files[name] = k
	}
	return k
}

// keep forgets what is not there any more.
func (d *digests) keep(found map[string]fs.FileInfo) {
	for name := range d.files {
		if found[name] == nil {
			delete(d.files, name)
		}
	}
}

// of returns the digest of a file.
func (d *digests) of(ctx context.Context, tree fs.FS, name string, info fs.FileInfo) (*digest, error) {
	k := d.lookup(name, info)
	if k.digest == nil {
		if _, err := k.hash(ctx, tree, name); err != nil {
			return nil, err
		}
	}
	return k.digest, nil
}

// frontmatter returns what stands at the top of a SKILL.md. The bytes are those that are
// hashed.
func (d *digests) frontmatter(ctx context.Context, tree fs.FS, name string, info fs.FileInfo) (*frontmatter, error) {
	k := d.lookup(name, info)
	if k.front == nil && k.wrong == nil {
		data, err := k.hash(ctx, tree, name)
		if err != nil {
			return nil, err
		}
		k.front, k.wrong = parseFrontmatter(data)
	}
	return k.front, k.wrong
}

func (k *known) hash(ctx context.Context, tree fs.FS, name string) ([]byte, error) {
	data, err := readFile(ctx, tree, name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	k.digest = &digest{text: "sha256:" + hex.EncodeToString(sum[:]), size: int64(len(data))}
	return data, nil
}

// readFile reads a file, unless ctx ends or the file is larger than any skill may be.
func readFile(ctx context.Context, tree fs.FS, name string) ([]byte, error) {
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is no file any more", name)
	case info.Size() > MaxBytes:
		return nil, fmt.Errorf("%q has %d bytes, a skill may have %d", name, info.Size(), MaxBytes)
	}
	const chunk = 256 << 10
	data := make([]byte, 0, info.Size()+1)
	for {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), len(data)+chunk)])
		data = data[:len(data)+n]
		switch {
		case len(data) > MaxBytes:
			return nil, fmt.Errorf("%q has more than the %d bytes that a skill may have", name, MaxBytes)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}
