package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want options
	}{
		{nil, options{postings: 400, batch: 25, delay: 600 * time.Millisecond}},
		{[]string{"-postings", "7", "-batch=3", "-delay", "1.5s", "-db", "x y.db", "-quiet"},
			options{postings: 7, batch: 3, delay: 1500 * time.Millisecond, db: "x y.db", quiet: true}},
		{[]string{"-delay", "0s"}, options{postings: 400, batch: 25}},
		{[]string{"task", "-postings", "9"}, options{task: true, postings: 9, batch: 25, delay: 600 * time.Millisecond}},
		{[]string{"serve", "-stdio"},
			options{serve: true, stdio: true, db: "longtool.db", postings: 400, batch: 25, delay: 600 * time.Millisecond}},
		{[]string{"serve", "-stdio", "-db", "postgres://u:p@h/d", "-postings", "9"},
			options{serve: true, stdio: true, db: "postgres://u:p@h/d", postings: 9, batch: 25, delay: 600 * time.Millisecond}},
		{[]string{"serve", "-http", "127.0.0.1:0", "-db", "x.db"},
			options{serve: true, http: "127.0.0.1:0", db: "x.db", postings: 400, batch: 25, delay: 600 * time.Millisecond}},
		{[]string{"serve", "-http", ":8080"},
			options{serve: true, http: ":8080", db: "longtool.db", postings: 400, batch: 25, delay: 600 * time.Millisecond}},
	} {
		got, err := parse(c.args)
		require.NoError(t, err, "%q", c.args)
		require.Equal(t, &c.want, got, "%q", c.args)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"-help"}, {"--help"}, {"help"}, {"serve", "-h"}, {"task", "-h"}} {
		status, stdout, stderr := inProcess(args...)
		require.Equal(t, exitOK, status, "%q", args)
		require.Equal(t, usage, stdout)
		require.Empty(t, stderr)
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-batch", "many"}, `invalid value "many" for flag -batch: want a whole number from 1 to 1000`},
		{[]string{"-batch", "0"}, `invalid value "0" for flag -batch: want a whole number from 1 to 1000`},
		{[]string{"-batch", "1001"}, `want a whole number from 1 to 1000`},
		{[]string{"-postings", "-3"}, `want a whole number from 1 to 100000`},
		{[]string{"-postings", "99999999999999999999"}, `want a whole number from 1 to 100000`},
		{[]string{"-delay", "600"}, `invalid value "600" for flag -delay: want a duration from 0s to 1m, such as 250ms`},
		{[]string{"-delay", "-1s"}, `want a duration from 0s to 1m`},
		{[]string{"-delay", "2m"}, `want a duration from 0s to 1m`},
		{[]string{"-db", ""}, `want a file path or a postgres:// URL`},
		{[]string{"-db", ":memory:"}, `want a file: a database in memory cannot be shared`},
		{[]string{"-db", "mysql://h/d"}, `unknown scheme "mysql"`},
		{[]string{"-db", "postgres://h:port:5/d"}, `the URL is malformed`},
		{[]string{"-quiet=perhaps"}, `invalid boolean value "perhaps" for -quiet`},
		{[]string{"-colour"}, `flag provided but not defined: -colour`},
		{[]string{"-batch"}, `flag needs an argument: -batch`},
		{[]string{"sing"}, `unknown command "sing"`},
		{[]string{"-quiet", "serve"}, `unexpected argument "serve"`},
		{[]string{"task", "serve"}, `unexpected argument "serve"`},
		{[]string{"task", "-http", "127.0.0.1:0"}, `flag provided but not defined: -http`},
		{[]string{"serve"}, `serve needs either -stdio or -http ADDR`},
		{[]string{"serve", "-stdio", "-http", "127.0.0.1:0"}, `serve needs either -stdio or -http ADDR`},
		{[]string{"serve", "-http", ""}, `invalid value "" for flag -http: want host:port, such as 127.0.0.1:8080`},
		{[]string{"serve", "-http", "8080"}, `want host:port`},
		{[]string{"serve", "-http", "127.0.0.1:"}, `want host:port`},
		{[]string{"serve", "-http", "http://127.0.0.1:8080"}, `want host:port`},
		{[]string{"serve", "-http"}, `flag needs an argument: -http`},
		{[]string{"-http", "127.0.0.1:0"}, `flag provided but not defined: -http`},
		{[]string{"serve", "-stdio", "-quiet"}, `flag provided but not defined: -quiet`},
		{[]string{"serve", "-stdio", "now"}, `unexpected argument "now"`},
	} {
		status, stdout, stderr := inProcess(c.args...)
		require.Equal(t, exitUsage, status, "%q", c.args)
		require.Empty(t, stdout, "%q", c.args)
		requireOneLine(t, c.want, stderr)
	}
}
