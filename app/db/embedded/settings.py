"""The server's settings, given on its command line so that no file in the cluster decides them."""

from pathlib import Path

from app.db.embedded.places import PORT

_FIXED = {
    # Nobody reaches it but through the socket; initdb has set scram-sha-256 for whoever does.
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "allow_alter_system": "off",
    # The log must never hold a query or a value. Statements and parameters are off in each place that could print
    # them; "terse" leaves out details, where a crash would quote the statement; and errors of a session go to that
    # session alone ("log" is above "error" here), since their first line often quotes the value that was wrong.
    "log_statement": "none",
    "log_duration": "off",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
    "log_min_messages": "log",
    "log_lock_waits": "off",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
    # Searches are many and short: compiling them or spreading one over processes costs more than it brings.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_connections": "100",
    # Durability is a promise (audit rows before answers), so nothing of it is traded; compression only saves writing.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_compression": "on",
}


def server_arguments(socket_dir: Path, shared_buffers: str) -> list[str]:
    """Command line arguments for `postgres`; `shared_buffers` as Postgres writes sizes, `256MB`."""
    chosen = _FIXED | {"unix_socket_directories": _one_directory(socket_dir), "shared_buffers": shared_buffers}
    return [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]


def _one_directory(path: Path) -> str:
    # The setting is a list with commas between; quoted it is one name whatever is in it.
    escaped = str(path).replace('"', '""')
    return f'"{escaped}"'
