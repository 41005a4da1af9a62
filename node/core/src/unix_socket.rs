//! The Unix socket for clients on the same machine.
//!
//! Owns the socket's file: its mode, the one of a process that died, its removal at the end. Never knows what is said on it.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use crate::limits;

/// Longest path in bytes that a socket may have on Linux.
pub const PATH_BYTES_MAX: usize = 107;

/// Which file a socket is.
type FileId = (u64, u64);

/// A socket that listens. Its file goes with it.
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    file: FileId,
}

impl UnixSocket {
    /// Listens at `path` for processes that may write to a file of this mode. The file of a process that has ended is replaced; that of
    /// one that listens is not, nor is anything else that is there.
    pub fn listen(path: &Path, mode: u32) -> io::Result<Self> {
        make_way(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // The file gets no more than this when it is made, and all of it, whatever the umask, a moment later.
        rustix::fs::fchmod(socket.as_fd(), Mode::from_raw_mode(mode))?;
        socket.bind(&SockAddr::unix(path)?)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        socket.listen(limits::BACKLOG as i32)?;
        socket.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(socket.into())?, path: path.to_path_buf(), file: file_id(path)? })
    }

    /// The next connection, and the user that it is from.
    pub async fn accept(&self) -> io::Result<(UnixStream, u32)> {
        let (stream, _) = self.listener.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, uid))
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Another process may have put its own there.
        if file_id(&self.path).is_ok_and(|file| file == self.file)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket's file could not be removed");
        }
    }
}

fn file_id(path: &Path) -> io::Result<FileId> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Removes what a process left that ended without a word.
fn make_way(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "something is there that is no socket"));
        }
        Ok(_) => {}
    }
    match BlockingStream::connect(path) {
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_and_tells_the_user_and_goes_with_its_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("clients");
        let socket = UnixSocket::listen(&path, 0o606).expect("it listens");
        assert_eq!(mode_of(&path), 0o606, "whatever the umask");
        let client = UnixStream::connect(&path);
        let (mut client, (mut stream, uid)) = tokio::try_join!(client, socket.accept()).expect("a connection");
        assert_eq!(uid, std::fs::metadata(dir.path()).expect("a directory").uid());
        client.write_all(b"x").await.expect("it takes a byte");
        assert_eq!(stream.read_u8().await.expect("a byte"), b'x');
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn only_the_socket_of_a_process_that_ended_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("clients");
        let error_of = |path: &Path| UnixSocket::listen(path, 0o600).err().map(|error| error.kind());
        let first = UnixSocket::listen(&path, 0o600).expect("it listens");
        assert_eq!(error_of(&path), Some(ErrorKind::AddrInUse));
        // As kill -9 leaves it.
        let moved = dir.path().join("moved");
        std::fs::rename(&path, &moved).expect("it is there");
        drop(first);
        std::fs::rename(&moved, &path).expect("a socket that is not at its path is left alone");
        let second = UnixSocket::listen(&path, 0o600).expect("nobody listens there");
        drop(second);
        std::fs::write(&path, "a file").expect("room");
        assert_eq!(error_of(&path), Some(ErrorKind::AlreadyExists));
        assert_eq!(std::fs::read_to_string(&path).expect("it is left alone"), "a file");
    }
}
