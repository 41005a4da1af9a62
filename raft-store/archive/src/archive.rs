//! The part of an archive that is of one cluster.
//!
//! Owns which objects are written and read, and in which order; those of many pieces are in `bundles`. Never decides when, or what is needed.

use std::fmt;
use std::io::{self, Read};
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::read::DeflateDecoder;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use quorate_machine::versions::Versions;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::base::FORMATS;
use crate::crypt::of_io;
use crate::directory;
use crate::stream::{Download, Upload};
use crate::{
    ArchiveError, BaseManifest, BaseName, BaseUpload, Catalogue, Keys, MacKeys, Place, Recipients, Segment,
    SegmentHead, SegmentName, WallMillis, hex, mac, names, segment,
};

mod bundles;

pub use bundles::{Bundle, NotMerged};

const BASES: &str = "base";
const SEGMENTS: &str = "log";
const MANIFEST: &str = "manifest.json";
const STATE: &str = "state";
const VERIFIED: &str = "verified.json";
/// How often an archive is listed until it shows the same gaps twice.
const LISTINGS_MAX: usize = 4;
/// Longest small object that is read whole.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// What became of a restore that was tried to see whether one can be had, and of the objects that were read beside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// When it was tried, by the clock of the node that did.
    pub at: WallMillis,
    /// That node.
    pub node: u64,
    /// The last entry that was restored.
    pub index: u64,
    /// The revision there.
    pub revision: u64,
    /// Wall clock of the log there.
    pub wall: WallMillis,
    /// What is wrong, if anything: points are not to be had, or only for as long as what stands in for an object is there. While something is, nothing
    /// is removed.
    pub fault: Option<String>,
    /// What of before the newest base no key of that node opens, if anything: such points can be restored with another key alone. Nothing is
    /// wrong with them.
    #[serde(default)]
    pub locked: Option<String>,
    /// Gaps between the points that are kept. Nobody can mend them.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// Names of objects that are damaged. They are read again each time, until they are mended or gone.
    #[serde(default)]
    pub damaged: Vec<String>,
    /// Bases and pieces are read in turn; the entry up to which those were that were read last.
    #[serde(default)]
    pub read_to: u64,
    /// The MAC of all that is before it as it is written, see [`crate::MacKeys`]; `None` where there is no key for that, and once it was read. The
    /// last field, since it is looked for from the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// The part of an archive that is of one cluster.
#[derive(Debug, Clone)]
pub struct Archive {
    place: Place,
    root: Path,
    cluster: u128,
    /// The keys by which it is authenticated what is written and read.
    macs: MacKeys,
}

impl fmt::Display for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place, names::cluster_dir(self.cluster))
    }
}

impl Archive {
    /// The part of this cluster, whether or not there is anything of it.
    pub fn of(place: Place, cluster: u128) -> Self {
        let root = place.prefix.clone().join(names::cluster_dir(cluster));
        Self { place, root, cluster, macs: MacKeys::default() }
    }

    /// The same, where all that is written is authenticated by these keys, and nothing is read that is not; where there are none, as before.
    #[must_use]
    pub fn with_macs(self, macs: MacKeys) -> Self {
        Self { macs, ..self }
    }

    /// The same, which reads only what has a MAC by the key that it writes with itself.
    #[must_use]
    pub fn with_first_mac(&self) -> Self {
        self.clone().with_macs(self.macs.first())
    }

    /// Tells whether what is written is authenticated.
    pub fn has_macs(&self) -> bool {
        !self.macs.is_none()
    }

    /// Finds what there is to restore: the part of the one cluster that is there, or of the one asked for.
    ///
    /// # Errors
    /// None or several are there.
    pub async fn find(place: Place, wanted: Option<u128>) -> Result<Self, ArchiveError> {
        let refused = |what: String| Err(ArchiveError::Refused(what));
        // A location may end in the part itself.
        if let Some((around, cluster)) = place.around()? {
            return match wanted.filter(|wanted| *wanted != cluster) {
                None => Ok(Self::of(around, cluster)),
                Some(wanted) => {
                    refused(format!("{place} is the archive of cluster {cluster:032x}, not of {wanted:032x}"))
                }
            };
        }
        let found = place.clusters().await?;
        let list = found.iter().map(|id| format!("{id:032x}")).collect::<Vec<_>>().join(", ");
        match (wanted, &found[..]) {
            (_, []) => refused(format!(
                "there is no archive of a cluster in {place}{}: name the place that nodes are given by --archive",
                if place.is_empty().await { ", which is empty" } else { "" }
            )),
            (None, [one]) => Ok(Self::of(place, *one)),
            (Some(wanted), _) if found.contains(&wanted) => Ok(Self::of(place, wanted)),
            (None, _) => refused(format!("{place} holds archives of several clusters, {list}: say which by --cluster")),
            (Some(wanted), _) => {
                refused(format!("{place} holds no archive of cluster {wanted:032x}: there are {list}"))
            }
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> u128 {
        self.cluster
    }

    fn store(&self) -> &dyn ObjectStore {
        &*self.place.store
    }

    fn segment_path(&self, name: &SegmentName) -> Path {
        self.root.clone().join(SEGMENTS).join(name.to_string())
    }

    fn base_dir(&self, name: &BaseName) -> Path {
        self.root.clone().join(BASES).join(name.to_string())
    }

    fn state_path(&self, manifest: &BaseManifest) -> Path {
        let encrypted = if manifest.is_encrypted() { names::ENCRYPTED } else { "" };
        self.base_dir(&manifest.name()).join(format!("{STATE}{encrypted}"))
    }

    /// All that is there, by its names. Each page of a listing is of its own moment: one that shows no newer base, and no piece any more of those
    /// that were needless once that one came, has a gap that there never was. So gaps count where two listings show the same.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub async fn catalogue(&self) -> Result<Catalogue, ArchiveError> {
        let mut listed = self.listed().await?;
        let mut gaps = listed.survey().gaps();
        for _ in 1..LISTINGS_MAX {
            if gaps.is_empty() {
                break;
            }
            listed = self.listed().await?;
            let before = mem::replace(&mut gaps, listed.survey().gaps());
            if gaps == before {
                break;
            }
        }
        Ok(listed)
    }

    async fn listed(&self) -> Result<Catalogue, ArchiveError> {
        let mut catalogue = Catalogue::default();
        let mut begun = Vec::new();
        let mut objects = self.store().list(Some(&self.root));
        while let Some(object) = objects.try_next().await.map_err(self.failed("cannot be listed"))? {
            let parts: Vec<_> = object.location.prefix_match(&self.root).into_iter().flatten().collect();
            let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
            match parts[..] {
                [BASES, name, MANIFEST] => catalogue.bases.extend(name.parse::<BaseName>()),
                [BASES, name, _] => begun.extend(name.parse::<BaseName>()),
                [SEGMENTS, name] => {
                    if let Ok(name) = name.parse::<SegmentName>() {
                        catalogue.bytes += object.size;
                        catalogue.segments.push(name);
                    }
                }
                _ => {}
            }
        }
        catalogue.bases.sort_unstable();
        begun.sort_unstable();
        begun.dedup();
        begun.retain(|name| catalogue.bases.binary_search(name).is_err());
        catalogue.unfinished = begun;
        catalogue.segments.sort_unstable();
        Ok(catalogue)
    }

    /// The pieces of the log whose names come after this one, in order. Costs little while there are few.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub async fn segments_after(&self, name: &SegmentName) -> Result<Vec<SegmentName>, ArchiveError> {
        let prefix = self.root.clone().join(SEGMENTS);
        let objects = self.store().list_with_offset(Some(&prefix), &self.segment_path(name));
        let names = objects.try_filter_map(async |object| {
            Ok(object.location.filename().and_then(|name| name.parse::<SegmentName>().ok()))
        });
        let mut names: Vec<_> = names.try_collect().await.map_err(self.failed("cannot be listed"))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Writes a piece of the log. It is there once this returns; again with the same bytes, nothing changes.
    ///
    /// # Errors
    /// The store did not take it, or nobody knows whether it did.
    pub async fn put_segment(
        &self,
        head: SegmentHead,
        entries: Vec<Bytes>,
        recipients: &Recipients,
    ) -> Result<(SegmentName, u64), ArchiveError> {
        let head = SegmentHead { cluster: format!("{:032x}", self.cluster), ..head };
        let sealed = segment::seal(head, &entries, recipients, &self.macs);
        let (name, object) =
            sealed.map_err(|source| ArchiveError::File { path: "a piece of the log".into(), source })?;
        let bytes = object.len() as u64;
        let put = self.store().put(&self.segment_path(&name), object.into()).await;
        put.map_err(ArchiveError::store(format!("{name} cannot be written to {self}")))?;
        Ok((name, bytes))
    }

    /// The bytes of a piece of the log, as they are there.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn segment_bytes(&self, name: &SegmentName) -> Result<Bytes, ArchiveError> {
        let got = async { self.store().get(&self.segment_path(name)).await?.bytes().await }.await;
        got.map_err(self.unreadable(name))
    }

    /// Reads a piece of the log out of its bytes.
    ///
    /// # Errors
    /// It is damaged, locked, forged or of another cluster.
    pub fn open_segment(&self, name: &SegmentName, bytes: &[u8], keys: &Keys) -> Result<Segment, ArchiveError> {
        let segment = segment::open(name, bytes, keys, &self.macs)?;
        self.check_cluster(&name.to_string(), &segment.head.cluster)?;
        Ok(segment)
    }

    /// Writes the state of a base: `write` is given a sink for it. Gives its manifest, in which what is known here is set; the base is there
    /// once that is written. Blocks; not to be called from a task.
    ///
    /// # Errors
    /// Writing failed, on either side. Nothing counts of it then.
    pub fn upload_base(
        &self,
        handle: &Handle,
        unfinished: &BaseManifest,
        recipients: &Recipients,
        write: impl FnOnce(&mut BaseUpload) -> io::Result<()>,
    ) -> Result<BaseManifest, ArchiveError> {
        let mut manifest = BaseManifest {
            format: FORMATS.writes(),
            cluster: format!("{:032x}", self.cluster),
            recipients: recipients.names().collect(),
            ..unfinished.clone()
        };
        let name = manifest.name();
        let failed = || ArchiveError::store(format!("base {name} cannot be written to {self}"));
        let state = self.state_path(&manifest);
        let parts = handle.block_on(self.store().put_multipart(&state)).map_err(failed())?;
        let done = BaseUpload::new(Upload::new(handle.clone(), parts), recipients)
            .and_then(|mut upload| write(&mut upload).map(|()| upload))
            .and_then(BaseUpload::finish);
        let (bytes, sha256) = done.map_err(|source| ArchiveError::File { path: format!("{self}/{state}"), source })?;
        (manifest.bytes, manifest.sha256) = (bytes, hex(&sha256));
        Ok(manifest)
    }

    /// Writes the manifest of a base whose state is there: from then on it counts.
    ///
    /// # Errors
    /// The store did not do it.
    pub async fn finish_base(&self, manifest: &BaseManifest) -> Result<(), ArchiveError> {
        let name = manifest.name();
        let json = manifest.written(&self.macs);
        let put = self.store().put(&self.base_dir(&name).join(MANIFEST), json.into()).await;
        put.map(drop).map_err(ArchiveError::store(format!("base {name} cannot be written to {self}")))
    }

    /// Reads the manifest of a base.
    ///
    /// # Errors
    /// It is damaged, forged, of a newer build, or cannot be read; or it has no MAC, and there is a key for that.
    pub async fn manifest(&self, name: &BaseName) -> Result<BaseManifest, ArchiveError> {
        self.manifest_of(FORMATS, name).await
    }

    async fn manifest_of(&self, known: Versions, name: &BaseName) -> Result<BaseManifest, ArchiveError> {
        let object = format!("{BASES}/{name}/{MANIFEST}");
        let bytes = self.small(&self.base_dir(name).join(MANIFEST), &object).await?;
        let damaged = |error: serde_json::Error| ArchiveError::damaged(&object, error.to_string());
        let format: Formatted = serde_json::from_slice(&bytes).map_err(damaged)?;
        ArchiveError::check_format(&object, format.format, known)?;
        let manifest: BaseManifest = serde_json::from_slice(&bytes).map_err(damaged)?;
        self.macs.check_manifest(&object, &bytes, manifest.mac.as_deref())?;
        if manifest.name() != *name {
            return Err(ArchiveError::damaged(object, "it is of another base than its name says"));
        }
        self.check_cluster(&object, &manifest.cluster)?;
        Ok(manifest)
    }

    /// Reads the state of a base: `read` is given its bytes. What it gives back counts only where this returns it, since the bytes are
    /// compared with the manifest once all were read. Blocks; not to be called from a task.
    ///
    /// # Errors
    /// The state is damaged or locked or cannot be read, or `read` says so.
    pub fn base<T, E: From<ArchiveError>>(
        &self,
        handle: &Handle,
        manifest: &BaseManifest,
        keys: &Keys,
        read: impl FnOnce(&mut dyn Read) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut download = self.download(handle, manifest)?;
        let object = format!("{BASES}/{}/{STATE}", manifest.name());
        let read = || -> Result<T, E> {
            let opened = keys.open(&object, manifest.is_encrypted(), &mut download)?;
            let mut state = DeflateDecoder::new(opened);
            read(&mut state)
        };
        let done = read();
        // The rest of it, so that what is said of damage is about all of its bytes.
        let read_to_end = io::copy(&mut download, &mut io::sink());
        check_download(manifest, download, read_to_end)?;
        done
    }

    /// Reads the bytes of a base's state and compares them with the manifest, which needs no key. Blocks.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    pub fn check_base(&self, handle: &Handle, manifest: &BaseManifest) -> Result<(), ArchiveError> {
        let mut download = self.download(handle, manifest)?;
        let read_to_end = io::copy(&mut download, &mut io::sink());
        check_download(manifest, download, read_to_end)
    }

    /// Reads the bytes of a base's state and compares them with its manifest, which needs no key, and compares the MAC of the manifest if there is a
    /// secret for it. A base without the right MAC is read, too: a reader with another secret, or none, may need it. Gives the number of bytes
    /// read, and a fault for each part that is damaged, forged, without a MAC or not readable. Blocks.
    pub fn prove_base(&self, handle: &Handle, name: &BaseName) -> (u64, Vec<ArchiveError>) {
        let (manifest, unproven) = match handle.block_on(self.manifest(name)) {
            Err(unproven @ (ArchiveError::Locked { .. } | ArchiveError::Forged { .. })) => {
                let open = self.clone().with_macs(MacKeys::default());
                (handle.block_on(open.manifest(name)), Some(unproven))
            }
            manifest => (manifest, None),
        };
        let (bytes, damaged) = match manifest {
            Ok(manifest) => (manifest.bytes, self.check_base(handle, &manifest).err()),
            Err(error) => (0, Some(error)),
        };
        (bytes, damaged.into_iter().chain(unproven).collect())
    }

    fn download(&self, handle: &Handle, manifest: &BaseManifest) -> Result<Download, ArchiveError> {
        let path = self.state_path(manifest);
        let got = handle.block_on(self.store().get(&path));
        let got = got.map_err(unread(manifest))?;
        Ok(Download::new(handle.clone(), got.into_stream()))
    }

    /// What the last restore that was tried came to; `None` where none was.
    ///
    /// # Errors
    /// It is damaged, forged, or cannot be read; or it has no MAC, and there is a key for that.
    pub async fn verified(&self) -> Result<Option<Verified>, ArchiveError> {
        match self.small(&self.root.clone().join(VERIFIED), VERIFIED).await {
            Ok(bytes) => {
                let read = serde_json::from_slice::<Verified>(&bytes);
                let mut verified = read.map_err(|error| ArchiveError::damaged(VERIFIED, error.to_string()))?;
                self.macs.check_note(VERIFIED, self.cluster, &bytes, verified.mac.take().as_deref())?;
                Ok(Some(verified))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes what a restore that was tried came to.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn note_verified(&self, verified: &Verified) -> Result<(), ArchiveError> {
        let mac = self.has_macs().then(|| mac::BLANK.to_owned());
        let blank = serde_json::to_string_pretty(&Verified { mac, ..verified.clone() }).expect("numbers and words");
        let json = self.macs.fill_note(self.cluster, &blank).unwrap_or(blank);
        let put = self.store().put(&self.root.clone().join(VERIFIED), json.into_bytes().into()).await;
        put.map(drop).map_err(self.failed("cannot be written to"))
    }

    /// Removes a base. The manifest goes first, so that nobody takes what is half there.
    ///
    /// # Errors
    /// The store did not do it.
    pub async fn remove_base(&self, name: &BaseName) -> Result<(), ArchiveError> {
        let dir = self.base_dir(name);
        for file in [MANIFEST.to_owned(), STATE.to_owned(), format!("{STATE}{}", names::ENCRYPTED)] {
            self.remove(&dir.clone().join(file)).await?;
        }
        // Uploads that broke off left files there that no listing shows.
        self.directory_at(&dir).map_or(Ok(()), |dir| directory::remove(&dir))
    }

    /// Where it is a directory: makes it private to its owner, since all of a cluster is in it, and removes what uploads left that broke
    /// off long before `now`; and leaves its [mark](Self::mark) there. Gives what an operator should know. Blocks.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn prepare(&self, now: WallMillis) -> Result<Option<String>, ArchiveError> {
        let Some(dir) = self.directory_at(&self.root) else { return Ok(None) };
        let warning = directory::shut(&dir)?;
        directory::mark(&dir)?;
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now);
        directory::remove_broken_off(&[dir.join(BASES), dir.join(SEGMENTS)], now)?;
        Ok(warning)
    }

    /// The file that [`Self::prepare`] leaves where it is a directory: without it this may be one on which nothing is mounted.
    pub fn mark(&self) -> Option<PathBuf> {
        self.directory_at(&self.root).map(|dir| directory::mark_in(&dir))
    }

    /// What a place in the store is called in the file system, where it has a name there.
    fn directory_at(&self, path: &Path) -> Option<PathBuf> {
        self.place.directory.as_ref().map(|directory| directory.join(path.as_ref()))
    }

    async fn remove(&self, path: &Path) -> Result<(), ArchiveError> {
        match self.store().delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(ArchiveError::store(format!("{path} cannot be removed"))(error)),
        }
    }

    async fn small(&self, path: &Path, object: &str) -> Result<Bytes, ArchiveError> {
        let failed = || ArchiveError::store(format!("{object} cannot be read from {self}"));
        let got = self.store().get(path).await.map_err(failed())?;
        if got.meta.size > SMALL_BYTES_MAX {
            return Err(ArchiveError::damaged(object, format!("it has {} bytes", got.meta.size)));
        }
        got.bytes().await.map_err(failed())
    }

    fn check_cluster(&self, object: &str, found: &str) -> Result<(), ArchiveError> {
        match found == format!("{:032x}", self.cluster) {
            true => Ok(()),
            false => Err(ArchiveError::damaged(
                object,
                format!("it is of cluster {found}, and stands among those of another"),
            )),
        }
    }

    fn unreadable(&self, name: &SegmentName) -> impl FnOnce(object_store::Error) -> ArchiveError + use<> {
        ArchiveError::store(format!("{name} cannot be read from {self}"))
    }

    fn failed(&self, what: &str) -> impl FnOnce(object_store::Error) -> ArchiveError + use<> {
        ArchiveError::store(format!("{self} {what}"))
    }
}

#[derive(Deserialize)]
struct Formatted {
    format: u32,
}

/// That the store does not give a state.
fn unread(manifest: &BaseManifest) -> impl FnOnce(object_store::Error) -> ArchiveError + use<> {
    ArchiveError::store(format!("the state of base {} cannot be read", manifest.name()))
}

/// Compares what was read of a state with its manifest, where the store gave all of it.
fn check_download(
    manifest: &BaseManifest,
    mut download: Download,
    read_to_end: io::Result<u64>,
) -> Result<(), ArchiveError> {
    if let Some(source) = download.take_broken() {
        return Err(unread(manifest)(source));
    }
    let object = format!("{BASES}/{}/{STATE}", manifest.name());
    read_to_end.map_err(|error| of_io(&object, &error))?;
    check_sum(&object, manifest, download.so_far())
}

fn check_sum(object: &str, manifest: &BaseManifest, read: (u64, [u8; 32])) -> Result<(), ArchiveError> {
    let (bytes, sha256) = read;
    if bytes != manifest.bytes {
        let what = format!("it has {bytes} bytes, and {} were written", manifest.bytes);
        return Err(ArchiveError::damaged(object, what));
    }
    match hex(&sha256) == manifest.sha256 {
        true => Ok(()),
        false => Err(ArchiveError::damaged(object, "its bytes are not those that were written")),
    }
}

#[cfg(test)]
mod tests;
