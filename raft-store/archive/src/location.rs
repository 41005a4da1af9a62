//! Where an archive is: an object store or a directory.
//!
//! Owns the forms of a location, which is shown and logged, so credentials are never in it. A build without the feature `object-stores`
//! refuses all but directories.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use url::Url;

#[cfg(feature = "object-stores")]
use crate::clouds;
use crate::{ArchiveError, directory, names};

/// Where an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    kind: Kind,
    /// The part of the name behind the bucket or container.
    prefix: Path,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    S3(String),
    Google(String),
    Azure(String),
    Directory(PathBuf),
    Given(Given),
}

/// A store that is at hand.
#[derive(Debug, Clone)]
struct Given {
    store: Arc<dyn ObjectStore>,
    shown: String,
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }
}

impl Eq for Given {}

impl FromStr for Location {
    type Err = ArchiveError;

    /// Reads `s3://BUCKET/PREFIX`, `gs://…`, `az://CONTAINER/PREFIX`, `file:///DIR` or the path of a directory.
    fn from_str(text: &str) -> Result<Self, ArchiveError> {
        let Some((scheme, _)) = text.split_once("://") else {
            return match text {
                "" => Err(refused("an empty location", "")),
                path => Ok(Self { kind: Kind::Directory(path.into()), prefix: Path::default() }),
            };
        };
        // What stands before `@`, or behind `?`, may be a secret: it is not repeated.
        let url = Url::parse(text).map_err(|error| refused("a location that cannot be read", &error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(ArchiveError::Refused(
                "a location names a place and nothing else: credentials come from the environment or the files of the cloud's own \
                 tools (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME, …)"
                    .into(),
            ));
        }
        let bucket = url.host_str().unwrap_or_default().to_owned();
        let kind = match (scheme, bucket.is_empty()) {
            ("s3", false) => Kind::S3(bucket),
            ("gs", false) => Kind::Google(bucket),
            ("az", false) => Kind::Azure(bucket),
            ("file", true) => {
                let path =
                    url.to_file_path().map_err(|()| refused("a file location without an absolute path", text))?;
                return Ok(Self { kind: Kind::Directory(path), prefix: Path::default() });
            }
            _ => return Err(refused("a location of no kind that is known", text)),
        };
        if !cfg!(feature = "object-stores") {
            return Err(left_out());
        }
        let prefix = Path::from_url_path(url.path()).map_err(|error| refused("a bad prefix", &error.to_string()))?;
        Ok(Self { kind, prefix })
    }
}

fn left_out() -> ArchiveError {
    ArchiveError::Refused(
        "this program was built without the feature `object-stores` of quorate-archive, and takes a directory alone: the packages have it, \
         and so has what `scripts/cluster up --full` builds"
            .into(),
    )
}

fn refused(what: &str, detail: &str) -> ArchiveError {
    let forms = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, file:///DIR or the path of a directory";
    ArchiveError::Refused(format!("{what}: {detail:?}; say {forms}"))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, bucket) = match &self.kind {
            Kind::S3(bucket) => ("s3", bucket),
            Kind::Google(bucket) => ("gs", bucket),
            Kind::Azure(container) => ("az", container),
            Kind::Directory(path) => return write!(f, "{}", path.display()),
            Kind::Given(given) => return f.write_str(&given.shown),
        };
        write!(f, "{scheme}://{bucket}")?;
        if self.prefix.as_ref().is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl Location {
    /// The file that says that a cluster archives here, where this is a directory, see [`crate::Archive::mark`].
    pub fn mark(&self, cluster: u128) -> Option<PathBuf> {
        match &self.kind {
            Kind::Directory(path) => Some(directory::mark_in(&path.join(names::cluster_dir(cluster)))),
            Kind::S3(_) | Kind::Google(_) | Kind::Azure(_) | Kind::Given(_) => None,
        }
    }

    /// A store that is at hand, under this name, for tests and simulations: no text names it.
    pub fn given(store: Arc<dyn ObjectStore>, shown: impl Into<String>) -> Self {
        Self { kind: Kind::Given(Given { store, shown: shown.into() }), prefix: Path::default() }
    }

    /// Opens the store, to write to it: a directory is made where it is missing. Nothing is asked of a store yet.
    ///
    /// # Errors
    /// Settings of the environment that make no sense, or a directory that cannot be made.
    pub fn open(&self) -> Result<Place, ArchiveError> {
        if let Kind::Directory(path) = &self.kind {
            std::fs::create_dir_all(path)
                .map_err(|source| ArchiveError::File { path: path.display().to_string(), source })?;
        }
        self.open_existing()
    }

    /// Opens the store, to read from it.
    ///
    /// # Errors
    /// Settings of the environment that make no sense, or a directory that is not there.
    pub fn open_existing(&self) -> Result<Place, ArchiveError> {
        let cannot = || ArchiveError::store(format!("{self} cannot be opened"));
        let store: Arc<dyn ObjectStore> = match &self.kind {
            #[cfg(feature = "object-stores")]
            Kind::S3(bucket) => Arc::new(clouds::s3(bucket).map_err(cannot())?),
            #[cfg(feature = "object-stores")]
            Kind::Google(bucket) => Arc::new(clouds::google(bucket).map_err(cannot())?),
            #[cfg(feature = "object-stores")]
            Kind::Azure(container) => Arc::new(clouds::azure(container).map_err(cannot())?),
            #[cfg(not(feature = "object-stores"))]
            Kind::S3(_) | Kind::Google(_) | Kind::Azure(_) => return Err(left_out()),
            Kind::Directory(path) => {
                if !path.is_dir() {
                    let what = format!("{} is no directory: there is no archive", path.display());
                    return Err(ArchiveError::Refused(what));
                }
                Arc::new(LocalFileSystem::new_with_prefix(path).map_err(cannot())?.with_fsync(true))
            }
            Kind::Given(given) => Arc::clone(&given.store),
        };
        let at = match &self.kind {
            Kind::Directory(path) => Some(path.clone()),
            Kind::S3(_) | Kind::Google(_) | Kind::Azure(_) | Kind::Given(_) => None,
        };
        Ok(Place { store, prefix: self.prefix.clone(), shown: self.to_string(), directory: at })
    }
}

/// A store that was opened, and the place in it: parts of several clusters may be there.
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    pub(crate) shown: String,
    /// Where it is a directory of this machine.
    pub(crate) directory: Option<PathBuf>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Place {
    /// A place in memory, for tests.
    pub fn in_memory() -> Self {
        let store = Arc::new(object_store::memory::InMemory::new());
        Self { store, prefix: Path::default(), shown: "memory".into(), directory: None }
    }

    /// Where this is the part of one cluster, as somebody who restores may name it: the place around it, and the cluster.
    ///
    /// # Errors
    /// The directory around it is not there.
    pub(crate) fn around(&self) -> Result<Option<(Self, u128)>, ArchiveError> {
        let Some(directory) = &self.directory else {
            let Some(name) = self.prefix.filename() else { return Ok(None) };
            let prefix = self.prefix.parent().unwrap_or_default();
            let shown = self.shown.strip_suffix(name).unwrap_or(&self.shown).trim_end_matches('/').to_owned();
            return Ok(names::cluster_of(name).map(|cluster| (Self { prefix, shown, ..self.clone() }, cluster)));
        };
        let name = directory.file_name().and_then(|name| name.to_str());
        let Some(cluster) = name.and_then(names::cluster_of) else { return Ok(None) };
        let around = match directory.parent() {
            Some(around) if !around.as_os_str().is_empty() => around.to_owned(),
            Some(_) | None => PathBuf::from("."),
        };
        let around = Location { kind: Kind::Directory(around), prefix: Path::default() };
        Ok(Some((around.open_existing()?, cluster)))
    }

    /// The clusters that archived something here, in order of their ids.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub async fn clusters(&self) -> Result<Vec<u128>, ArchiveError> {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        let found = self.store.list_with_delimiter(prefix).await;
        let found = found.map_err(ArchiveError::store(format!("{} cannot be listed", self.shown)))?;
        let dirs = found.common_prefixes.iter().filter_map(|dir| names::cluster_of(dir.filename()?));
        Ok(dirs.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
    }

    /// How many objects are below a name; for messages about what is not there.
    pub(crate) async fn is_empty(&self) -> bool {
        let prefix = (!self.prefix.as_ref().is_empty()).then_some(&self.prefix);
        matches!(self.store.list(prefix).try_next().await, Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_shown_as_they_were_written() {
        for text in ["s3://bucket", "s3://bucket/a/b", "gs://bucket/a", "az://container/a", "/srv/archive", "archive"] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        assert_eq!("file:///srv/a%20b".parse::<Location>().unwrap().to_string(), "/srv/a b");
        assert_eq!("s3://bucket/a/".parse::<Location>().unwrap().to_string(), "s3://bucket/a");
    }

    #[test]
    fn what_is_no_location_is_refused_with_what_would_be() {
        for text in ["", "ftp://host/a", "s3://", "s3:///a", "file://host/a"] {
            let refused = text.parse::<Location>().expect_err(text).to_string();
            assert!(refused.contains("s3://BUCKET/PREFIX"), "{text}: {refused}");
        }
    }

    #[test]
    fn secrets_in_a_location_are_refused_and_not_repeated() {
        for text in ["s3://AKIA:hunter2@bucket/a", "az://container/a?sig=hunter2", "s3://bucket/a#hunter2"] {
            let refused = text.parse::<Location>().expect_err(text).to_string();
            assert!(refused.contains("credentials come from") && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_store_that_is_at_hand_is_opened_as_it_is() {
        let store = || Arc::new(object_store::memory::InMemory::new());
        let location = Location::given(store(), "at hand");
        assert_eq!((location.to_string(), location.open().unwrap().to_string()), ("at hand".into(), "at hand".into()));
        assert_eq!(location, location.clone());
        assert_ne!(location, Location::given(store(), "at hand"));
    }

    #[test]
    fn a_directory_is_made_to_be_written_and_only_then() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let location: Location = path.to_str().unwrap().parse().unwrap();
        let refused = location.open_existing().unwrap_err().to_string();
        assert!(refused.contains("there is no archive"), "{refused}");
        assert!(!path.exists());
        location.open().unwrap();
        assert!(path.is_dir());
    }
}
