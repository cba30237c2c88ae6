"""The Postgres that comes with the appliance: a private cluster in the data directory, reached by socket only."""

from app.db.embedded.address import SUPERUSER, ClusterAddress
from app.db.embedded.cluster import EmbeddedCluster
from app.db.embedded.cpu import check_cpu
from app.db.embedded.prepare import DATABASE, OWNER_LOGIN

__all__ = ["DATABASE", "OWNER_LOGIN", "SUPERUSER", "ClusterAddress", "EmbeddedCluster", "check_cpu"]
