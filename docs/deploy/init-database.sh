#!/bin/sh
# Runs once, when the container makes its cluster: the owner's login, the database and the extension, which only a
# superuser may make. Everything else is made by `stacks migrate`, as the owner.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'END'
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
\set owner_password `cat /run/secrets/owner_password`
CREATE ROLE stacks_owner LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS NOCREATEDB NOREPLICATION PASSWORD :'owner_password';
CREATE DATABASE stacks OWNER stacks_owner TEMPLATE template0;
REVOKE ALL ON DATABASE stacks, postgres, template1 FROM PUBLIC;
\connect stacks
CREATE EXTENSION vector SCHEMA public;
END
