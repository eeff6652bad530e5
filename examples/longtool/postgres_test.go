package main

import (
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A postgres:// URL here makes the tests run on PostgreSQL too, in databases that
// they create and drop. with-postgres.sh starts a server for that.
const postgresURL = "LONGTOOL_TEST_POSTGRES"

// sleepingBackends counts those that run the job's slow statement.
const sleepingBackends = `
	select count(*) from pg_stat_activity
	where datname = current_database() and state = 'active' and wait_event = 'PgSleep'`

const leftOut = "longtool: " + postgresURL + " is not set: the tests on PostgreSQL are left out"

// On CI nothing is left out.
func TestPostgreSQLIsThere(t *testing.T) {
	if os.Getenv(postgresURL) == "" {
		require.NotEqual(t, "true", os.Getenv("CI"), leftOut)
		t.Log(leftOut)
		return
	}
	db := openTest(t, newPostgres(t))
	require.Equal(t, "PostgreSQL", db.dialect)
	require.NoError(t, db.PingContext(t.Context()))
}

// newPostgres makes an empty database for one test and returns its URL.
func newPostgres(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(os.Getenv(postgresURL))
	require.NoError(t, err)
	admin, err := openPostgres(u.String())
	require.NoError(t, err)
	name := "longtool_" + strings.ToLower(rand.Text())
	_, err = admin.ExecContext(t.Context(), "create database "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.Exec("drop database " + name + " with (force)")
		require.NoError(t, err)
		require.NoError(t, admin.Close())
	})
	u.Path = "/" + name
	return u.String()
}
