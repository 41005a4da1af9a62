//! The token of `root`, which is there before the first user is and when the cluster has no leader.
//!
//! Owns its file: what may stand in it, and reading it again when it changes. Keeps nothing of it but a hash.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use quorate_machine::types::SecretHash;

use crate::file_mode::refuse_open_secret;
use crate::file_version::FileVersion;
use crate::gateway::auth::proof::{TOKEN_MARK, hash_of, is_same};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A token that is shorter can be guessed.
const TOKEN_BYTES_MIN: usize = 32;
/// A token whose letters carry fewer bits can be guessed, too: that of `openssl rand -hex 32` has about 250 bits, half of it 120.
const TOKEN_BITS_MIN: f64 = 60.0;
/// Longer ones do not fit into a header.
const TOKEN_BYTES_MAX: usize = 1_024;

/// The token in a file.
#[derive(Debug)]
pub struct RootToken {
    path: PathBuf,
    hash: ArcSwap<SecretHash>,
}

impl RootToken {
    /// Reads the file.
    ///
    /// # Errors
    /// A sentence that says what to do, and nothing of what is in the file.
    pub fn open(path: &Path) -> Result<Arc<Self>, String> {
        let hash = ArcSwap::from_pointee(read(path)?);
        Ok(Arc::new(Self { path: path.to_path_buf(), hash }))
    }

    /// Whether a file holds a good token.
    ///
    /// # Errors
    /// A sentence that says what to do, and nothing of what is in the file.
    pub fn read(path: &Path) -> Result<(), String> {
        read(path).map(|_| ())
    }

    /// Whether this is of the token.
    pub fn is(&self, hash: &SecretHash) -> bool {
        is_same(&self.hash.load(), hash)
    }

    /// Reads the file again whenever it changed. Where that fails the token stays what it was.
    pub async fn follow(self: Arc<Self>) {
        let (mut seen, mut told) = (FileVersion::of(&self.path), None);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = FileVersion::of(&self.path);
            if now == seen {
                continue;
            }
            match read(&self.path) {
                Ok(hash) => {
                    self.hash.store(Arc::new(hash));
                    (seen, told) = (now, None);
                    tracing::info!(file = %self.path.display(), "the root token was exchanged");
                }
                // Looked at again each time: the file may be readable by then.
                Err(reason) if told.as_ref() == Some(&reason) => {}
                Err(reason) => {
                    tracing::error!(reason, "the root token stays what it was");
                    told = Some(reason);
                }
            }
        }
    }
}

/// The hash of the token in a file.
fn read(path: &Path) -> Result<SecretHash, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let token = text.strip_suffix('\n').unwrap_or(&text);
    let token = token.strip_suffix('\r').unwrap_or(token);
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{shown} must hold one line of printable ASCII without blanks: the token"));
    }
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return Err(format!(
            "{shown} holds a token of {} characters; give {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX}, like those of \
             `openssl rand -hex 32`",
            token.len()
        ));
    }
    if bits(token.as_bytes()) < TOKEN_BITS_MIN {
        return Err(format!(
            "{shown} holds a token that can be guessed: it repeats few characters; give one like those of `openssl rand -hex 32`"
        ));
    }
    if token.starts_with(TOKEN_MARK) {
        return Err(format!(
            "{shown} holds a token that begins with `{TOKEN_MARK}`, as those of users do; give another"
        ));
    }
    refuse_open_secret(path).map_err(|why| format!("{shown} {why}"))?;
    Ok(hash_of(token))
}

/// How many bits a token of ASCII has at most, as far as its letters tell: by how often each stands in it, in as much of it as does not just
/// repeat what is before.
fn bits(token: &[u8]) -> f64 {
    let repeats_after = |period: &usize| token[*period..] == token[..token.len() - period];
    let period = (1..token.len()).find(repeats_after).unwrap_or(token.len());
    let mut counts = [0_u16; 256];
    for byte in &token[..period] {
        counts[usize::from(*byte)] += 1;
    }
    let counts = counts.into_iter().filter(|count| *count > 0).map(f64::from);
    let all: f64 = counts.clone().sum();
    counts.map(|count| count * (all / count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_mode::write_secret;

    /// What a file with this text is read as.
    fn tried(text: &str) -> Result<SecretHash, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token");
        write_secret(&path, text);
        read(&path)
    }

    #[test]
    fn what_repeats_itself_is_no_token_however_long() {
        for unit in ["a", "ab", "password", "Tr0ub4dor&3", "0123456789"] {
            let why = tried(&unit.repeat(90)).expect_err(unit);
            assert!(why.contains("can be guessed") && why.contains("openssl rand"), "{why}");
            assert!(!why.contains(&unit.repeat(3)), "{why}");
        }
        assert!(tried(&format!("{}b", "a".repeat(1_000))).is_err());
        for good in [
            "9c1d3c0b6a6f4a0cb7a2f5e1c9d8b7a6",
            "83174029556120387946610372854913",
            "correct-horse-battery-staple-once",
        ] {
            assert!(tried(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_file_holds_one_good_token() {
        let dir = tempfile::tempdir().expect("a directory");
        let token = "0123456789abcdef0123456789abcdef";
        for text in [token.to_owned(), format!("{token}\n"), format!("{token}\r\n")] {
            assert!(is_same(&tried(&text).expect("a token"), &hash_of(token)), "{text:?}");
        }
        for text in ["", "short", &format!("{token} {token}"), &format!("{token}\n{token}\n"), &format!("qt_{token}")] {
            let why = tried(text).expect_err("refused");
            assert!(!why.contains("0123456789abcdef"), "{why}");
        }
        assert!(read(&dir.path().join("missing")).expect_err("refused").contains("cannot be read"));
        let open = dir.path().join("open");
        std::fs::write(&open, token).expect("written");
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("it is ours");
        assert!(read(&open).expect_err("refused").contains("open has the mode 644"));
    }
}
