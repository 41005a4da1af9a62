//! Which versions of other software clients are told, that look for features by them.

/// The version of etcd whose interface a node says that it has.
///
/// Invariant: both are three numbers, since clients read them so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdVersion {
    /// Of the server.
    pub server: String,
    /// Of the cluster: the first of its minor version.
    pub cluster: String,
}

impl EtcdVersion {
    /// Reads three numbers with dots between them.
    pub fn new(server: &str) -> Option<Self> {
        let parts: Vec<u32> = server.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let [major, minor, patch] = parts[..] else { return None };
        Some(Self { server: format!("{major}.{minor}.{patch}"), cluster: format!("{major}.{minor}.0") })
    }
}

impl Default for EtcdVersion {
    /// Kubernetes turns features off below 3.5.13, and expects streams of ranges from 3.7 on.
    fn default() -> Self {
        Self { server: "3.6.5".to_owned(), cluster: "3.6.0".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(EtcdVersion::new("3.6.5"), Some(EtcdVersion::default()));
        assert_eq!(EtcdVersion::new("3.5.21").map(|version| version.cluster), Some("3.5.0".to_owned()));
        assert!(
            ["", "3.6", "v3.6.5", "3.6.5-dev", "3.6.5.1", "3..5"].iter().all(|bad| EtcdVersion::new(bad).is_none())
        );
    }
}
