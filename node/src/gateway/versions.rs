//! Which versions of other software clients are told, that look for features by them.

/// Of etcd's server: the one whose interface this node has. Kubernetes turns features off below 3.5.13, and Patroni reads digits and dots.
pub const ETCD_SERVER: &str = "3.6.5";
/// Of etcd's cluster.
pub const ETCD_CLUSTER: &str = "3.6.0";
