#!/bin/sh
# Makes the secrets of the containers in .secrets/, once; what is there already is kept. Needs nothing but a shell.
#
# The directory is closed to everybody else on this machine. The files in it are readable, because each is mounted by
# itself into a container whose user has another number than yours.
set -eu
cd "$(dirname "$0")/../.."

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

if [ -e .secrets ]; then
    echo ".secrets is there already and stays as it is."
    exit 0
fi
draft=$(mktemp -d .secrets.XXXXXX)
trap 'rm -rf "$draft"' EXIT

superuser=$(random) owner=$(random) service=$(random)
printf %s "$superuser" >"$draft/superuser_password"
printf %s "$owner" >"$draft/owner_password"

# What server and worker may know. The keys must be the same in every process.
cat >"$draft/service.toml" <<END
database_url = "postgresql://stacks_login:$service@postgres:5432/stacks"
ticket_key = "$(random)"
digest_key = "$(random)"
END

# What migrations need besides: the login that owns the schema.
cp "$draft/service.toml" "$draft/migrate.toml"
echo "database_owner_url = \"postgresql://stacks_owner:$owner@postgres:5432/stacks\"" >>"$draft/migrate.toml"

chmod 0444 "$draft"/*
chmod 0700 "$draft"
mv "$draft" .secrets
trap - EXIT
echo "Made .secrets/. Keep a copy of it where the backups are: without ticket_key and digest_key"
echo "a restored database needs a migration, and earlier query digests can no longer be compared."
