//! The log of an archive as bundles: reading pieces out of them, checking them, and making them of what is there.
//!
//! Owns that each piece is compared with its checksum on its way into a bundle, and the bundle once it is written. Never decides what
//! becomes one, and never removes anything by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use object_store::buffered::BufWriter;
use tokio::io::AsyncWriteExt;

use super::{Archive, SEGMENTS};
use crate::bundle::{FIXED_BYTES, Index, Part};
use crate::{ArchiveError, Keys, Listed, MacKeys, Segment, SegmentName, segment};

/// Bytes that are sent at a time.
const PART_BYTES: usize = 8 << 20;
/// So many damaged pieces of a bundle are named.
const NAMED_MAX: usize = 8;
/// Shorter waits are saved up.
const STEP: Duration = Duration::from_millis(2);

/// Why objects did not become one.
#[derive(Debug, thiserror::Error)]
pub enum NotMerged {
    /// One of them cannot be had as it was written.
    #[error("{1}")]
    Object(Box<SegmentName>, Box<ArchiveError>),
    /// The store did not do it.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl NotMerged {
    fn of(object: &SegmentName) -> impl Fn(ArchiveError) -> Self {
        move |error| match error.is_of_an_object() {
            true => Self::Object(Box::new(object.clone()), Box::new(error)),
            false => Self::Archive(error),
        }
    }
}

/// An object that is read from its begin on.
struct Reading {
    archive: Archive,
    name: SegmentName,
    chunks: BoxStream<'static, object_store::Result<Bytes>>,
    chunk: Bytes,
}

impl Reading {
    /// Whether more is there.
    async fn has_more(&mut self) -> Result<bool, ArchiveError> {
        while self.chunk.is_empty() {
            match self.chunks.try_next().await.map_err(self.archive.unreadable(&self.name))? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// So many bytes, or fewer where it ends before.
    async fn take(&mut self, wanted: usize) -> Result<Bytes, ArchiveError> {
        if self.chunk.len() >= wanted {
            return Ok(self.chunk.split_to(wanted));
        }
        let mut bytes = BytesMut::with_capacity(wanted);
        while bytes.len() < wanted && self.has_more().await? {
            let count = self.chunk.len().min(wanted - bytes.len());
            bytes.extend_from_slice(&self.chunk.split_to(count));
        }
        Ok(bytes.freeze())
    }

    /// Goes on by so many bytes, or to the end.
    async fn pass(&mut self, mut count: u64) -> Result<(), ArchiveError> {
        while count > 0 && self.has_more().await? {
            let passed = self.chunk.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            self.chunk.advance(passed);
            count -= passed as u64;
        }
        Ok(())
    }
}

/// A bundle that is being read: each piece behind those that were read before.
pub struct Bundle {
    from: Reading,
    index: Index,
    /// How many of its pieces are behind.
    read: usize,
}

impl Bundle {
    /// Its name.
    pub fn name(&self) -> &SegmentName {
        &self.from.name
    }

    /// The names of its pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &SegmentName> {
        self.index.parts().iter().map(|part| &part.name)
    }

    /// How many pieces that were not read stand before this one, if it is in there and was not read either.
    fn ahead(&self, piece: &SegmentName) -> Option<usize> {
        self.index.parts()[self.read..].binary_search_by(|part| part.name.cmp(piece)).ok()
    }

    /// Whether this piece can be read: it is in there, and behind those that were read.
    pub fn is_ahead(&self, piece: &SegmentName) -> bool {
        self.ahead(piece).is_some()
    }

    /// Reads a piece.
    ///
    /// # Errors
    /// It is not ahead, damaged, locked, of another cluster, or cannot be read.
    pub async fn segment(&mut self, piece: &SegmentName, keys: &Keys) -> Result<Segment, ArchiveError> {
        let bytes = self.bytes_of(piece).await?;
        self.from.archive.open_segment(piece, &bytes, keys).map_err(|error| error.within(self.name()))
    }

    /// The bytes of a piece, found to be those that were written.
    async fn bytes_of(&mut self, piece: &SegmentName) -> Result<Bytes, ArchiveError> {
        let Some(skipped) = self.ahead(piece) else {
            return Err(ArchiveError::Refused(format!("{piece} is not in what is left of {}", self.name())));
        };
        let bytes = self.index.parts()[self.read..self.read + skipped].iter().map(|part| part.bytes).sum();
        self.from.pass(bytes).await?;
        self.read += skipped;
        let (_, bytes) = self.next_piece().await?.expect("it is ahead");
        segment::check(piece, &bytes).map_err(|error| error.within(self.name()))?;
        Ok(bytes)
    }

    /// The next piece as it is; `None` behind the last.
    async fn next_piece(&mut self) -> Result<Option<(Part, Bytes)>, ArchiveError> {
        let Some(part) = self.index.parts().get(self.read).cloned() else { return Ok(None) };
        self.read += 1;
        let bytes = self.from.take(part.bytes as usize).await?;
        match bytes.len() as u64 == part.bytes {
            true => Ok(Some((part, bytes))),
            false => Err(ArchiveError::damaged(self.name(), format!("it ends within its piece {}", part.name))),
        }
    }
}

impl Archive {
    /// All pieces and bundles of the log, with their bytes.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub async fn segments(&self) -> Result<Vec<Listed>, ArchiveError> {
        let objects = self.store().list(Some(&self.root.clone().join(SEGMENTS)));
        let names = objects.try_filter_map(async |object| {
            let name = object.location.filename().and_then(|name| name.parse::<SegmentName>().ok());
            Ok(name.map(|name| (name, object.size)))
        });
        names.try_collect().await.map_err(self.failed("cannot be listed"))
    }

    /// Begins to read a bundle: its index. What is behind that comes as it is read.
    ///
    /// # Errors
    /// Its index is damaged, of a newer build, or cannot be read.
    pub async fn open_bundle(&self, name: &SegmentName) -> Result<Bundle, ArchiveError> {
        let got = self.store().get(&self.segment_path(name)).await.map_err(self.unreadable(name))?;
        let (archive, name, chunks) = (self.clone(), name.clone(), got.into_stream());
        let mut from = Reading { archive, name, chunks, chunk: Bytes::new() };
        let fixed = from.take(FIXED_BYTES).await?;
        let packed = from.take(Index::packed_bytes(&from.name, &fixed)?).await?;
        let index = Index::unpack(&from.name, &packed)?;
        Ok(Bundle { from, index, read: 0 })
    }

    /// Reads the bytes of a piece, or of all pieces of a bundle, and compares them with their names, which needs no key. Gives how many.
    ///
    /// # Errors
    /// All that is damaged, or that it cannot be read.
    pub async fn check_segment(&self, name: &SegmentName) -> Result<u64, Vec<ArchiveError>> {
        self.look_through(name, &MacKeys::default()).await
    }

    /// Reads and compares as [`Self::check_segment`] does, and compares the MAC of each piece, where there is a key for that. Reports only one of
    /// the pieces of a bundle that have none, and one of those with a wrong one.
    ///
    /// # Errors
    /// All that is damaged, forged or without a MAC, or that it cannot be read.
    pub async fn prove_segment(&self, name: &SegmentName) -> Result<u64, Vec<ArchiveError>> {
        self.look_through(name, &self.macs).await
    }

    async fn look_through(&self, name: &SegmentName, macs: &MacKeys) -> Result<u64, Vec<ArchiveError>> {
        if name.is_bundle() {
            return self.look_through_bundle(name, macs).await;
        }
        let bytes = self.segment_bytes(name).await.map_err(|error| vec![error])?;
        match looked_at(name, &bytes, macs) {
            Ok(()) => Ok(bytes.len() as u64),
            Err(error) => Err(vec![error]),
        }
    }

    async fn look_through_bundle(&self, name: &SegmentName, macs: &MacKeys) -> Result<u64, Vec<ArchiveError>> {
        let (mut count, mut damaged, mut missing, mut forged) = (0, Vec::new(), None, None);
        let mut bundle = self.open_bundle(name).await.map_err(|error| vec![error])?;
        while damaged.len() < NAMED_MAX {
            match bundle.next_piece().await {
                Ok(Some((part, bytes))) => {
                    count += part.bytes;
                    match looked_at(&part.name, &bytes, macs) {
                        Ok(()) => {}
                        // They are many as a rule, of before there was a key, or of before another one.
                        Err(error @ ArchiveError::Locked { .. }) => missing = missing.or(Some(error.within(name))),
                        Err(error @ ArchiveError::Forged { .. }) => forged = forged.or(Some(error.within(name))),
                        Err(error) => damaged.push(error.within(name)),
                    }
                    if damaged.len() == NAMED_MAX {
                        damaged.push(ArchiveError::damaged(name, "what is behind these may be, too"));
                    }
                }
                Ok(None) => {
                    match bundle.from.has_more().await {
                        Ok(false) => {}
                        Ok(true) => damaged.push(ArchiveError::damaged(name, "more is behind its last piece")),
                        Err(error) => damaged.push(error),
                    }
                    break;
                }
                Err(error) => {
                    damaged.push(error);
                    break;
                }
            }
        }
        damaged.extend(missing.into_iter().chain(forged));
        if damaged.is_empty() { Ok(count) } else { Err(damaged) }
    }

    /// Writes one bundle of all pieces that these objects are or hold, and reads it again; at most so many bytes a second. The objects
    /// stay: those that are not the bundle itself may go then.
    ///
    /// # Errors
    /// One of them is damaged or gone, or the store did not do it.
    pub async fn merge(&self, objects: &[Listed], bytes_per_second: u64) -> Result<SegmentName, NotMerged> {
        // Where each piece is; where it is an object itself, rather there.
        let mut places: BTreeMap<SegmentName, (u64, &SegmentName)> = BTreeMap::new();
        for (name, bytes) in objects.iter().filter(|(name, _)| !name.is_bundle()) {
            places.insert(name.clone(), (*bytes, name));
        }
        for (name, _) in objects.iter().filter(|(name, _)| name.is_bundle()) {
            let bundle = self.open_bundle(name).await.map_err(NotMerged::of(name))?;
            for part in bundle.index.parts() {
                places.entry(part.name.clone()).or_insert((part.bytes, name));
            }
        }
        let parts = places.iter().map(|(name, (bytes, _))| Part { name: name.clone(), bytes: *bytes }).collect();
        let apart = || ArchiveError::Refused("pieces that do not follow one another make no bundle".into());
        let index = Index::of(parts).ok_or_else(apart)?;
        let bundle = index.name();
        let is_there = objects.iter().any(|(name, _)| *name == bundle);
        if is_there && self.check_segment(&bundle).await.is_ok() {
            return Ok(bundle);
        }
        let path = self.segment_path(&bundle);
        let mut sink =
            BufWriter::with_capacity(Arc::clone(&self.place.store), path, PART_BYTES).with_max_concurrency(1);
        if let Err(error) = self.fill(&mut sink, &index, &places, bytes_per_second).await {
            // Where this fails, too, a rule of the bucket has to remove the parts.
            let _aborted = sink.abort().await;
            return Err(error);
        }
        let written = sink.shutdown().await;
        written.map_err(|source| ArchiveError::File { path: format!("{self}/{SEGMENTS}/{bundle}"), source })?;
        match self.check_segment(&bundle).await {
            Ok(_) => Ok(bundle),
            Err(mut errors) => Err(NotMerged::Archive(errors.swap_remove(0))),
        }
    }

    async fn fill(
        &self,
        sink: &mut BufWriter,
        index: &Index,
        places: &BTreeMap<SegmentName, (u64, &SegmentName)>,
        bytes_per_second: u64,
    ) -> Result<(), NotMerged> {
        let unwritable = || ArchiveError::store(format!("{} cannot be written to {self}", index.name()));
        let head = index.head().map_err(|source| ArchiveError::File { path: index.name().to_string(), source })?;
        sink.put(head.into()).await.map_err(unwritable())?;
        let mut bundles: BTreeMap<&SegmentName, Bundle> = BTreeMap::new();
        #[expect(clippy::disallowed_methods, reason = "how fast objects are read changes none")]
        let (begun, mut count) = (Instant::now(), 0);
        for Part { name, bytes: expected } in index.parts() {
            let (_, object) = places[name];
            let read = match object.is_bundle() {
                true => self.read_of(object, &mut bundles, name).await,
                false => self.checked_bytes(name).await,
            };
            let bytes = read.map_err(NotMerged::of(object))?;
            if bytes.len() as u64 != *expected {
                let what = format!("it has {} bytes, and {expected} were listed", bytes.len());
                return Err(NotMerged::of(object)(ArchiveError::damaged(name, what)));
            }
            sink.put(bytes).await.map_err(unwritable())?;
            count += expected;
            let early = time_for(count, bytes_per_second).saturating_sub(begun.elapsed());
            if early >= STEP {
                tokio::time::sleep(early).await;
            }
        }
        Ok(())
    }

    /// A piece of one of the bundles that are being read.
    async fn read_of<'n>(
        &self,
        object: &'n SegmentName,
        bundles: &mut BTreeMap<&'n SegmentName, Bundle>,
        piece: &SegmentName,
    ) -> Result<Bytes, ArchiveError> {
        // Those that end before it hold nothing more.
        bundles.retain(|name, _| name.last >= piece.first);
        let bundle = match bundles.remove(object) {
            Some(bundle) => bundle,
            None => self.open_bundle(object).await?,
        };
        bundles.entry(object).or_insert(bundle).bytes_of(piece).await
    }

    async fn checked_bytes(&self, name: &SegmentName) -> Result<Bytes, ArchiveError> {
        let bytes = self.segment_bytes(name).await?;
        segment::check(name, &bytes).map(|()| bytes)
    }

    /// Removes pieces and bundles of the log, many at a time.
    ///
    /// # Errors
    /// The store did not do it, or not all of it.
    pub async fn remove_segments(&self, names: &[SegmentName]) -> Result<(), ArchiveError> {
        let paths: Vec<_> = names.iter().map(|name| Ok(self.segment_path(name))).collect();
        let mut removed = self.store().delete_stream(stream::iter(paths).boxed());
        while let Some(removed) = removed.next().await {
            match removed {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("does not remove what it should")(error)),
            }
        }
        Ok(())
    }
}

/// Compares a piece with its name, and with its MAC where there are keys.
fn looked_at(name: &SegmentName, bytes: &[u8], macs: &MacKeys) -> Result<(), ArchiveError> {
    segment::check(name, bytes)?;
    macs.detach(&name.to_string(), bytes).map(drop)
}

/// How long so many bytes take.
fn time_for(bytes: u64, bytes_per_second: u64) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(bytes_per_second.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
