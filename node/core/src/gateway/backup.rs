//! The whole state as a stream of pieces.
//!
//! Owns the way from the thread that walks over the state to whoever sends it on: some pieces wait between the two, no more, so a
//! reader that is slow slows the walk down. The form of the bytes is the store's.

use std::io::{self, Write};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use quorate_api::{Applied, ErrorCode};
use quorate_machine::types::Revision;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::backend::SharedNode;
use crate::gateway::auth::requirement::{self, Permission};
use crate::gateway::call::Call;
use crate::gateway::caller::Watching;
use crate::gateway::failure::Failure;
use crate::limits;

/// A piece of it, or why there are no more.
pub type Piece = io::Result<Bytes>;

/// The pieces on their way to a caller, for as long as it may have them.
pub struct Pieces {
    /// `None` once nothing more is given.
    source: Option<mpsc::Receiver<Piece>>,
    /// The one who takes them, where not everybody may.
    watching: Option<Watching>,
}

impl Pieces {
    /// The next one; once the right is taken away, an error of the kind `PermissionDenied`, also instead of a piece that was read before.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        let piece = ready!(source.poll_recv(cx));
        let refused = self.watching.as_ref().filter(|_| piece.is_some()).and_then(Watching::end);
        let Some((_, why)) = refused else { return Poll::Ready(piece) };
        // The walk ends when nobody takes its next piece.
        self.source = None;
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::PermissionDenied, why))))
    }
}

/// A place among the few backups that a node gives out at once.
pub fn place(call: &Call) -> Result<OwnedSemaphorePermit, Failure> {
    let place = call.api.admission.backups.clone().try_acquire_owned();
    place.map_err(|_full| Failure::too_many("this node gives out as many backups at once as it may"))
}

/// Begins one: gives its revision, and the pieces as they come.
pub async fn begin(call: &Call, place: OwnedSemaphorePermit) -> Result<(Revision, Pieces), Failure> {
    let watching = Watching::of(&call.caller(), requirement::on_prefix(Permission::Backup, b""));
    let (begun, revision) = oneshot::channel();
    let (pieces, source) = mpsc::channel(limits::BACKUP_PIECES_MAX);
    let backend = call.api.node.clone();
    tokio::task::spawn_blocking(move || walk(&backend, pieces, begun, place));
    match revision.await {
        Ok(revision) => Ok((revision, Pieces { source: Some(source), watching })),
        Err(_gone) => Err(Failure::new(ErrorCode::Internal, Applied::No, "the backup did not begin")),
    }
}

/// Walks over the state on a thread that may block, until all is sent or nobody takes it any more.
fn walk(
    backend: &SharedNode,
    pieces: mpsc::Sender<Piece>,
    begun: oneshot::Sender<Revision>,
    _permit: OwnedSemaphorePermit,
) {
    let mut begun = Some(begun);
    let mut sink = Sink { pieces, piece: Vec::with_capacity(limits::BACKUP_PIECE_BYTES) };
    let mut tell = |revision| {
        if let Some(begun) = begun.take() {
            // Who asked may be gone; then the first piece finds that out.
            let _gone = begun.send(revision);
        }
    };
    if let Err(error) = backend.back_up(&mut sink, &mut tell) {
        tracing::warn!(%error, "a backup was not read to its end");
        // Cuts the connection, so that nobody takes the stream for whole.
        let _gone = sink.pieces.blocking_send(Err(io::Error::other(error.to_string())));
    }
}

/// Gathers what is written into pieces.
struct Sink {
    pieces: mpsc::Sender<Piece>,
    piece: Vec<u8>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(limits::BACKUP_PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == limits::BACKUP_PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(limits::BACKUP_PIECE_BYTES));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client does not take it any more");
        self.pieces.blocking_send(Ok(piece.into())).map_err(gone)
    }
}
