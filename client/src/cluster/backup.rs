//! Backups: the whole cluster as one file, which is only there once it is whole.
//!
//! Owns the file and the check of its end. The form of what is before the end is the node's: `quorate-node backup verify` looks
//! into it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::Method;
use xxhash_rust::xxh3::Xxh3;

use crate::api::BACKUP_CONTENT_TYPE;
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, push_query};
use crate::client::Client;
use crate::transport::OpenBody;

/// What the last bytes of a backup begin with.
const END_MAGIC: [u8; 8] = *b"\x89QRBEND\n";
/// How many those are; the last sixteen are the XXH3-128 of everything before them.
const END_BYTES: usize = 72;
const TOTAL_BYTES: usize = 16;
/// How long nothing may come: a node that reads from a slow disk still sends something every second.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes gathered before the file is written.
const WRITE_BYTES: usize = 1 << 20;

/// A backup that is to be taken, by [`Backup::save`].
#[must_use = "does nothing until saved"]
pub struct Backup<'a> {
    client: &'a Client,
    path: PathBuf,
    local: bool,
    progress: Option<Box<dyn FnMut(u64) + Send + 'a>>,
}

/// A backup that is whole and durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedBackup {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// The revision it is of.
    pub revision: u64,
}

impl Client {
    /// A backup of the cluster into this file, which must not be there yet. While it is written it has `.part` behind its
    /// name.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// let saved = client.backup("monday.backup").on_progress(|bytes| eprintln!("{bytes} bytes")).save().await?;
    /// println!("revision {} in {} bytes", saved.revision, saved.bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self, path: impl Into<PathBuf>) -> Backup<'_> {
        Backup { client: self, path: path.into(), local: false, progress: None }
    }
}

impl<'a> Backup<'a> {
    /// Of whatever the asked node has, without asking the others: also where there is no quorum.
    pub fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// Tells how many bytes are written, now and then.
    pub fn on_progress(mut self, told: impl FnMut(u64) + Send + 'a) -> Self {
        self.progress = Some(Box::new(told));
        self
    }

    /// Takes it. Is not tried again once it has begun; what was written of it is removed then.
    pub async fn save(mut self) -> Result<SavedBackup, Error> {
        if self.path.exists() {
            return Err(Error::Invalid(format!("{} is there already; a backup replaces nothing", self.path.display())));
        }
        let mut target = String::from("/v1/cluster/backup");
        if self.local {
            push_query(&mut target, "consistency", "local");
        }
        // A follower does it as well, and the leader has more to do.
        let call = Call::new(Method::GET, target, Intent::Read, Preference::Any)?;
        let until = Instant::now() + self.client.call_timeout();
        let (node, body) = self.client.open_body(&call, BACKUP_CONTENT_TYPE, Some(until)).await?;
        let part = part_of(&self.path);
        let saved = self.receive(node, body, &part).await;
        if saved.is_err() {
            // The first fault is the one to tell.
            let _gone = fs::remove_file(&part);
        }
        saved
    }

    async fn receive(&mut self, node: usize, mut body: OpenBody, part: &Path) -> Result<SavedBackup, Error> {
        let mut intake = Intake::new(part)?;
        loop {
            match body.next(PATIENCE).await {
                Ok(Some(piece)) => {
                    intake.take(&piece)?;
                    if let Some(told) = &mut self.progress {
                        told(intake.bytes);
                    }
                }
                Ok(None) => break,
                Err(kind) => {
                    let reason = format!("the backup broke off after {} bytes: {}", intake.bytes, kind.reason());
                    return Err(self.client.strange_answer(node, reason));
                }
            }
        }
        let (bytes, end) = intake.finish()?;
        let end = end.map_err(|why| self.client.strange_answer(node, format!("the backup is not whole: {why}")))?;
        let failed = |source| Error::File { path: self.path.clone(), source };
        // Not a rename: it would replace a file that has come meanwhile.
        fs::hard_link(part, &self.path).and_then(|()| fs::remove_file(part)).map_err(failed)?;
        sync_parent(&self.path).map_err(failed)?;
        Ok(SavedBackup { path: self.path.clone(), bytes, rows: end.rows, revision: end.revision })
    }
}

/// The name of a backup that is not whole yet.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    // Another one may be on its way to the same file.
    name.push(format!(".part-{:08x}", rand::random::<u32>()));
    PathBuf::from(name)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// What the end of a backup says that is of use here.
#[derive(Debug, PartialEq, Eq)]
struct End {
    rows: u64,
    revision: u64,
}

/// A backup as it comes in.
struct Intake {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Not written yet.
    pending: BytesMut,
    total: Xxh3,
    /// The last bytes, not in `total` yet.
    tail: BytesMut,
}

impl Intake {
    fn new(path: &Path) -> Result<Self, Error> {
        // Only its owner may read it: all of the cluster is in it.
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let pending = BytesMut::with_capacity(WRITE_BYTES);
        Ok(Self { path: path.to_owned(), file, bytes: 0, pending, total: Xxh3::new(), tail: BytesMut::new() })
    }

    fn take(&mut self, piece: &Bytes) -> Result<(), Error> {
        self.bytes += piece.len() as u64;
        self.tail.extend_from_slice(piece);
        if self.tail.len() > END_BYTES {
            let before = self.tail.split_to(self.tail.len() - END_BYTES);
            self.total.update(&before);
        }
        self.pending.extend_from_slice(piece);
        if self.pending.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        let written = self.file.write_all(&self.pending);
        self.pending.clear();
        written.map_err(|source| Error::File { path: self.path.clone(), source })
    }

    /// Makes the file durable. Its length, and what its end says, or why it is none.
    fn finish(mut self) -> Result<(u64, Result<End, String>), Error> {
        self.write()?;
        self.file.sync_all().map_err(|source| Error::File { path: self.path.clone(), source })?;
        Ok((self.bytes, check_end(&self.tail, self.total)))
    }
}

fn check_end(tail: &[u8], mut before: Xxh3) -> Result<End, String> {
    if tail.len() < END_BYTES || tail[..8] != END_MAGIC {
        return Err("it is cut short".into());
    }
    let (covered, total) = tail.split_at(END_BYTES - TOTAL_BYTES);
    before.update(covered);
    if before.digest128().to_le_bytes() != *total {
        return Err("its checksum is wrong".into());
    }
    let number = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().expect("eight bytes are eight bytes"));
    Ok(End { rows: number(8), revision: number(32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(rows: usize) -> Vec<u8> {
        let mut bytes = vec![5; rows];
        bytes.extend_from_slice(&END_MAGIC);
        for number in [3_u64, 4, 5, 42, 0, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let mut total = Xxh3::new();
        total.update(&bytes);
        bytes.extend_from_slice(&total.digest128().to_le_bytes());
        bytes
    }

    fn taken(bytes: &[u8], piece: usize) -> Result<End, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("part");
        let mut intake = Intake::new(&path).expect("a file");
        bytes.chunks(piece).for_each(|piece| intake.take(&Bytes::copy_from_slice(piece)).expect("written"));
        let (length, end) = intake.finish().expect("written");
        assert_eq!(fs::read(&path).expect("there"), bytes);
        assert_eq!(length, bytes.len() as u64);
        end
    }

    #[test]
    fn the_end_is_found_however_the_pieces_come_and_anything_less_is_refused() {
        let bytes = whole(200);
        for piece in [1, 7, 71, 72, 73, 1_000] {
            assert_eq!(taken(&bytes, piece), Ok(End { rows: 3, revision: 42 }), "pieces of {piece}");
        }
        for length in 0..bytes.len() {
            assert!(taken(&bytes[..length], 50).is_err(), "cut to {length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(taken(&damaged, 50).is_err(), "byte {at}");
        }
    }
}
