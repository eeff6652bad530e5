package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrongUseIsOneLineAndStatusTwo(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-unknown"},
		{"-era", "stone", "--", "x"},
		{"-level", "WISH", "--", "x"},
		{"-run", "(", "--", "x"},
		{"-run", "no-such-rule", "--", "x"},
		{"-tool", "x", "-args", "[1]", "--", "x"},
		{"-args", "{}", "--", "x"},
		{"-nested", "pizza=x", "--", "x"},
		{"-nested", "form=", "--", "x"},
		{"-header", "none", "--", "x"},
		{"-other", "none", "--", "x"},
		{"-task", "", "--", "x"},
		{"-task", "x [1]", "--", "x"},
		{"-prompt", "soon", "--", "x"},
		{"ftp://x/y"},
		{"my-server"},
		{"http://x/", "http://y/"},
		{"http://x/", "--", "y"},
		{"compare"},
		{"compare", "-config", "no-such-file"},
		{"compare", "-config", "x", "-format", "paper"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), args, &stdout, &stderr), "%q", args)
		assert.Empty(t, stdout.String(), "%q", args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "%q: %s", args, stderr.String())
		assert.True(t, strings.HasPrefix(stderr.String(), "heedcheck: "), "%q: %s", args, stderr.String())
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"compare", "-h"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr))
		assert.Contains(t, stdout.String(), "usage:")
		assert.Empty(t, stderr.String())
	}
}

func TestListNamesEachRule(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-list"}, &stdout, &stderr))
	for _, rule := range transporttest.Rules() {
		assert.Contains(t, stdout.String(), rule.Name+"  "+rule.Level.String(), rule.Name)
		assert.Contains(t, stdout.String(), rule.Explanation)
	}
	stdout.Reset()
	require.Equal(t, exitOK, run(t.Context(), []string{"-list", "-level", "MUST", "-run", "^id-"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "id-kind  MUST")
	assert.NotContains(t, stdout.String(), "id-reuse")
}

func TestFlagsAreUnderstood(t *testing.T) {
	o, err := parse([]string{
		"-era", "stateless", "-json-only=false", "-tool", "wait", "-args", `{"ms":3000}`, "-nested", `sampling=ask {"q":"x"}`, "-nested", "url=login",
		"-header", "Authorization: Bearer x:y", "-other", "Authorization: Bearer z", "-task", `work {"n":1}`, "-prompt", "3s", "-parallel", "2", "--", "my-server", "--", "-x",
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"my-server", "--", "-x"}, o.command)
	assert.Equal(t, transporttest.StreamStateless|transporttest.HTTPStateless, o.settings)
	assert.Equal(t, "wait", o.calls[transporttest.NeedSlow].Tool)
	assert.JSONEq(t, `{"ms":3000}`, string(o.calls[transporttest.NeedSlow].Arguments))
	assert.JSONEq(t, `{"q":"x"}`, string(o.calls[transporttest.NeedSampling].Arguments))
	assert.Equal(t, transporttest.Call{Tool: "login"}, o.calls[transporttest.NeedURL])
	assert.Equal(t, []string{"Bearer x:y"}, o.header["Authorization"])
	assert.Equal(t, []string{"Bearer z"}, o.other["Authorization"])
	assert.Equal(t, "work", o.calls[transporttest.NeedTask].Tool)
	assert.JSONEq(t, `{"n":1}`, string(o.calls[transporttest.NeedTask].Arguments))
	assert.Equal(t, 2, o.parallel)
}
