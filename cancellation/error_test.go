package cancellation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heedmcp/heed/cancellation"
	"github.com/stretchr/testify/require"
)

var origins = []struct {
	origin cancellation.Origin
	name   string
	owed   bool
}{
	{cancellation.Peer, "peer", false},
	{cancellation.Disconnect, "disconnect", false},
	{cancellation.SessionEnd, "session_end", false},
	{cancellation.Timeout, "timeout", true},
	{cancellation.Shutdown, "shutdown", true},
	{cancellation.Parent, "parent", true},
	{0, "unknown", true},
	{200, "unknown", true},
}

func TestOriginNamesAndWhatTheyOwe(t *testing.T) {
	for _, c := range origins {
		require.Equal(t, c.name, c.origin.String())
		require.Equal(t, c.owed, c.origin.AnswerOwed(), c.name)
	}
}

func TestErrorMatchesWhatTheStandardLibraryWouldSay(t *testing.T) {
	for _, c := range origins {
		err := fmt.Errorf("step 3: %w", &cancellation.Error{Origin: c.origin, Reason: "r"})
		late := c.origin == cancellation.Timeout
		require.ErrorIs(t, err, cancellation.ErrCancelled)
		require.Equal(t, late, isAny(err, context.DeadlineExceeded), c.name)
		require.Equal(t, !late, isAny(err, context.Canceled), c.name)
		require.NotErrorIs(t, err, cancellation.ErrFinished)
		var fault *cancellation.Error
		require.ErrorAs(t, err, &fault)
		require.Equal(t, c.origin, fault.Origin)
	}
}

func TestErrorText(t *testing.T) {
	text := func(reason string) string {
		return (&cancellation.Error{Origin: cancellation.Peer, Reason: reason}).Error()
	}
	require.Equal(t, `cancelled by peer: "user pressed stop"`, text("user pressed stop"))
	require.Equal(t, `cancelled by peer`, text(""))
	require.Equal(t, `cancelled by peer: "a\nb\x1b[2J%s%!d(\"\u202e"`, text("a\nb\x1b[2J%s%!d(\"\u202e"))
	require.Less(t, len(text(strings.Repeat("x", 1<<20))), 2*cancellation.MaxReason, "bounded, whoever made it")
	require.Equal(t, "not cancelled", (*cancellation.Error)(nil).Error())
	require.NotErrorIs(t, (*cancellation.Error)(nil), cancellation.ErrCancelled)
}

func TestCancelBoundsReasons(t *testing.T) {
	for name, c := range map[string]struct{ given, want string }{
		"short":              {"stop", "stop"},
		"empty":              {"", ""},
		"exact":              {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"long":               {strings.Repeat("x", 1<<20), strings.Repeat("x", 1024)},
		"cut between runes":  {"x" + strings.Repeat("é", 1000), "x" + strings.Repeat("é", 511)},
		"invalid":            {"a\xffb", "a\uFFFDb"},
		"invalid at cut":     {strings.Repeat("x", 1023) + "\xf0\x9f\x98\x80", strings.Repeat("x", 1023)},
		"cut late in a rune": {strings.Repeat("x", 1021) + "\xf0\x9f\x98\x80", strings.Repeat("x", 1021)},
		"invalid and long":   {strings.Repeat("\xff", 1<<20), "\uFFFD"},
		"grows by repair":    {strings.Repeat("a\xff", 512), strings.Repeat("a\uFFFD", 256)},
		"only tails":         {strings.Repeat("\x80", 2000), "\uFFFD"},
		"format verbs":       {"%s%d%!", "%s%d%!"},
		"control":            {"\x00\n\x1b", "\x00\n\x1b"},
	} {
		s := cancellation.New(t.Context())
		s.Cancel(cancellation.Peer, c.given)
		got := s.Finish().Reason
		require.Equal(t, c.want, got, name)
	}
}

func FuzzReason(f *testing.F) {
	f.Add("user pressed stop")
	f.Add(strings.Repeat("é", 1000))
	f.Add(strings.Repeat("a\xff", 1000))
	f.Fuzz(func(t *testing.T, reason string) {
		s := cancellation.New(t.Context())
		s.Cancel(cancellation.Peer, reason)
		got := s.Finish()
		require.True(t, utf8.ValidString(got.Reason))
		require.LessOrEqual(t, len(got.Reason), cancellation.MaxReason)
		if utf8.ValidString(reason) {
			require.True(t, strings.HasPrefix(reason, got.Reason))
			require.Greater(t, len(got.Reason)+utf8.UTFMax, min(len(reason), cancellation.MaxReason))
		}
		require.NotContains(t, got.Error(), "\n")
	})
}
