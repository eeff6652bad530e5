package skills_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/skills"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type jsonText = json.RawMessage

func TestInvariant_K1_WhatIsListedCanBeReadAndNothingElse(t *testing.T) {
	tree := shelf()
	c := serve(t, tree, nil)
	listed := map[string]bool{}
	for _, s := range get[skillList](c, "skills/list", nil).Skills {
		for _, f := range s.files(t) {
			listed[f.URI] = true
			got := get[contents](c, "resources/read", M{"uri": f.URI}).Contents[0]
			data := got.Blob
			if got.Text != nil {
				data = []byte(*got.Text)
			}
			sum := sha256.Sum256(data)
			assert.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), f.Digest, f.URI)
			assert.Equal(t, len(data), f.Size, f.URI)
		}
	}
	for _, uri := range []string{
		"skill://README.md", "skill://acme/billing/notes.txt", "skill://acme/billing/refunds/.env", "skill://acme/billing/refunds/.git/config",
		"skill://git-workflow/../README.md", "skill://git-workflow/%2e%2e/README.md", "skill://git-workflow/..%2fREADME.md",
		"skill://git-workflow", "skill://", "skill://git-workflow//SKILL.md", "skill://./git-workflow/SKILL.md",
		"skill://acme/billing/refunds/a b/ü?.txt", // another spelling is another URI
	} {
		assert.False(t, listed[uri])
		assert.Equal(t, -32602, c.refused("resources/read", M{"uri": uri}), uri)
	}
}

func TestInvariant_K2_ASkillThatBreaksARuleIsRefused(t *testing.T) {
	many := fstest.MapFS{"a/SKILL.md": top("a")}
	for i := range skills.MaxFiles {
		many[fmt.Sprintf("a/%d", i)] = text("")
	}
	big := fstest.MapFS{"a/SKILL.md": top("a"), "a/1": {Data: make([]byte, skills.MaxBytes/2)}, "a/2": {Data: make([]byte, skills.MaxBytes/2)}}
	for name, c := range map[string]struct {
		tree fstest.MapFS
		says string
	}{
		"another name":        {fstest.MapFS{"a/SKILL.md": top("b")}, "last part of its path"},
		"no prefix":           {fstest.MapFS{"SKILL.md": top("a")}, "last part of its path"},
		"no frontmatter":      {fstest.MapFS{"a/SKILL.md": text("# a\n")}, "three hyphens"},
		"too many files":      {many, "513 files"},
		"too many bytes":      {big, "16777216 bytes"},
		"a SKILL.md too big":  {fstest.MapFS{"a/SKILL.md": {Data: make([]byte, skills.MaxBytes+1)}}, "16777216 bytes"},
		"beside a good skill": {fstest.MapFS{"a/SKILL.md": top("a"), "b/SKILL.md": text("")}, "three hyphens"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			err := skills.Enable(s, c.tree, nil)
			var refused *skills.SkillError
			require.ErrorAs(t, err, &refused)
			assert.ErrorContains(t, err, c.says)
			assert.Equal(t, -32601, (&client{t, s}).refused("skills/list", nil), "nothing was added")
		})
	}
	delete(many, "a/0")
	big["a/2"] = &fstest.MapFile{Data: make([]byte, skills.MaxBytes/2-len(top("a").Data))}
	for name, tree := range map[string]fstest.MapFS{"files": many, "bytes": big} {
		require.NoError(t, skills.Enable(plain(), tree, nil), "as many %s as are allowed", name)
	}
}

// counted counts how often files are opened.
type counted struct {
	fstest.MapFS
	opened map[string]int
}

func (c counted) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.MapFS.Open(name)
}

func TestInvariant_K3_FilesAreHashedWhenTheyChange(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		old := time.Now().Add(-time.Hour)
		tree := counted{fstest.MapFS{"a/SKILL.md": top("a"), "a/f": {Data: []byte("one"), ModTime: old}}, map[string]int{}}
		c := serve(t, tree, nil)
		digest := func() string {
			time.Sleep(time.Second) // a catalog counts for as long
			return get[skillList](c, "skills/list", nil).Skills[0].files(t)[1].Digest
		}
		first := digest()
		assert.Equal(t, first, digest())
		assert.Equal(t, 1, tree.opened["a/f"], "an unchanged file is read once")

		tree.MapFS["a/f"] = &fstest.MapFile{Data: []byte("two"), ModTime: time.Now()}
		second := digest()
		assert.NotEqual(t, first, second)
		// The same time and the same size: the clock of the disk was too slow to tell.
		tree.MapFS["a/f"] = &fstest.MapFile{Data: []byte("six"), ModTime: tree.MapFS["a/f"].ModTime}
		assert.NotEqual(t, second, digest())
		digest()
		before := tree.opened["a/f"]
		digest()
		assert.Equal(t, before, tree.opened["a/f"], "it was left alone since")
	})
}

// Skills come, change, break and go while the server runs.
func TestNoticesChanges(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tree := shelf()
		s := server.New(&mcp.Implementation{Name: "librarian", Version: "1"}, &server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, skills.Enable(s, tree, nil))
		c := &client{t, s}
		tree["new/SKILL.md"] = top("new")
		assert.Equal(t, -32602, c.refused("resources/read", M{"uri": "skill://new/SKILL.md"}), "within a second nothing is looked at twice")
		time.Sleep(time.Second)
		get[contents](c, "resources/read", M{"uri": "skill://new/SKILL.md"})
		get[M](c, "skills/get", M{"uri": "skill://new/SKILL.md"})
		assert.Empty(t, log.String())

		tree["new/SKILL.md"] = text("broken")
		for range 3 {
			time.Sleep(time.Second)
			assert.Equal(t, -32602, c.refused("skills/get", M{"uri": "skill://new/SKILL.md"}))
		}
		assert.Equal(t, 1, strings.Count(log.String(), "a skill is not served"), "it is said once")
		assert.Equal(t, -32602, c.refused("resources/read", M{"uri": "skill://new/SKILL.md"}))

		delete(tree, "git-workflow/SKILL.md")
		assert.Equal(t, -32602, c.refused("resources/read", M{"uri": "skill://git-workflow/SKILL.md"}), "even before the next scan")
		time.Sleep(time.Second)
		assert.Len(t, get[skillList](c, "skills/list", nil).Skills, 2)
	})
}

// A tree that fails is the server's fault, and tells the client nothing.
func TestTreesThatFail(t *testing.T) {
	require.ErrorIs(t, skills.Enable(plain(), failing{}, nil), errDisk)
	bubble.Test(t, func(t *testing.T) {
		broken := false
		c := serve(t, failing{&broken}, nil)
		broken = true
		time.Sleep(time.Second)
		for _, method := range []string{"skills/list", "resources/list"} {
			a := c.ask(method, nil)
			require.NotNil(t, a.Error)
			assert.Equal(t, -32603, a.Error.Code)
			assert.NotContains(t, a.Error.Message, errDisk.Error())
		}
	})
}

var errDisk = errors.New("the disk is on fire")

type failing struct{ broken *bool }

func (f failing) Open(name string) (fs.File, error) {
	if f.broken == nil || *f.broken {
		return nil, errDisk
	}
	return fstest.MapFS{"a/SKILL.md": top("a")}.Open(name)
}

func TestOptionsThatAreRefused(t *testing.T) {
	for _, o := range []*skills.Options{
		{Scheme: "Skill"}, {Scheme: "a:b"}, {Scheme: "7"}, {Prefix: "/a"}, {Prefix: "a/"}, {Prefix: "a/../b"}, {Prefix: "."}, {PageSize: -1},
	} {
		assert.Error(t, skills.Enable(plain(), shelf(), o), "%+v", o)
	}
	s := plain()
	require.NoError(t, skills.Enable(s, shelf(), nil))
	var twice *server.RegistrationError
	require.ErrorAs(t, skills.Enable(s, shelf(), nil), &twice)
}

// slow is a tree whose files open only when they may.
type slow struct {
	tree fstest.MapFS // no part of it, so that directories are opened as well
	gate *chan struct{}
}

func (s slow) Open(name string) (fs.File, error) {
	if gate := *s.gate; gate != nil {
		<-gate
	}
	return s.tree.Open(name)
}

// A scan that is cancelled ends, one that waits for it does as well, and the next request scans anew.
func TestScansAreCancelled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var gate chan struct{}
		s := plain()
		require.NoError(t, skills.Enable(s, slow{shelf(), &gate}, nil))
		gate = make(chan struct{})
		time.Sleep(time.Second)
		meta := M{mcp.MetaKeyProtocolVersion: server.Version20260728, mcp.MetaKeyClientCapabilities: M{}}
		raw, err := json.Marshal(M{"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": M{"_meta": meta}})
		require.NoError(t, err)
		var calls []*server.Call
		for range 2 { // one scans, one waits for it
			var reply capture
			s.Stateless().Receive(raw, &reply, &server.Extra{Context: t.Context(), Stateless: true}, func(call *server.Call) {
				calls = append(calls, call)
				go call.Run()
			})
			synctest.Wait()
		}
		require.EqualValues(t, 2, s.Stats().InFlight)
		calls[1].Cancel(cancellation.Disconnect, "")
		synctest.Wait()
		assert.EqualValues(t, 0, s.Stats().Lingering, "who waits for a scan need not wait for its end")
		calls[0].Cancel(cancellation.Disconnect, "")
		close(gate)
		synctest.Wait()
		assert.EqualValues(t, 0, s.Stats().InFlight)
		assert.EqualValues(t, 0, s.Stats().Lingering)
		assert.Len(t, get[skillList](&client{t, s}, "skills/list", nil).Skills, 3)
	})
}
