//! Proof of who wrote an object: a MAC by a secret of the nodes.
//!
//! Owns what the keys look like, where a MAC stands, and what is said of one that is missing or wrong. Encryption does not say who wrote
//! something: recipients are public, so whoever may write to the store could encrypt a state of their own for them.
//!
//! A piece of the log has its MAC behind its bytes, as they are sealed: 32 bytes of HMAC-SHA256, then [`MARK`]. A manifest has it as a field,
//! in hexadecimal, over the manifest's bytes with zeros in that place. The manifest has the SHA-256 of the state of its base. The note of a trial,
//! `verified.json`, has a MAC in the same way, over the name of its cluster as well, which it does not contain. A bundle has none of its own: each
//! of its pieces has. A backup that is a file has one as a piece, of its SHA-256.

use std::fmt;
use std::path::Path;

use ring::hmac;

use crate::{ArchiveError, hex};

/// Ends an object that has a MAC before it.
const MARK: [u8; 16] = *b"\x89quorate-mac-v1\n";
const MAC_BYTES: usize = 32;
/// Bytes of a MAC and what ends it.
pub(crate) const TRAILER_BYTES: usize = MAC_BYTES + MARK.len();
/// Stands in a text where its MAC is to be.
pub(crate) const BLANK: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Shortest secret: 128 bits in hexadecimal.
const SECRET_BYTES_MIN: usize = 32;

/// The kinds of things that have a MAC. Nothing of one kind passes for something of another.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Piece,
    Manifest,
    Note,
    File,
}

impl Kind {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Piece => b"quorate archive: a piece of the log",
            Self::Manifest => b"quorate archive: the manifest of a base",
            Self::Note => b"quorate archive: what a try of a restore noted",
            Self::File => b"quorate backup: the SHA-256 of a file",
        }
    }
}

/// Secrets by which objects are authenticated: the first for those that are written, any of them for those that are read. Without one,
/// nothing is authenticated. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MacKeys(Vec<String>);

impl MacKeys {
    /// Reads a file of secrets, one a line, and comments behind `#`.
    ///
    /// # Errors
    /// It cannot be read, holds none, or one that is too short.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ArchiveError::File { path: path.display().to_string(), source })?;
        Self::parse(&text).map_err(|error| ArchiveError::Refused(format!("{}: {error}", path.display())))
    }

    /// Reads what such a file holds.
    ///
    /// # Errors
    /// It holds no secret, or one that is too short.
    pub fn parse(text: &str) -> Result<Self, ArchiveError> {
        let mut secrets = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.len() < SECRET_BYTES_MIN {
                return Err(ArchiveError::Refused(format!(
                    "line {number} has {} characters, and a secret has {SECRET_BYTES_MIN} at least; `openssl rand -hex 32` makes one",
                    line.len()
                )));
            }
            secrets.push(line.to_owned());
        }
        match secrets.is_empty() {
            true => Err(ArchiveError::Refused("it holds no secret".into())),
            false => Ok(Self(secrets)),
        }
    }

    /// Tells whether there are none, so that nothing is authenticated.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the one that is written with, alone.
    #[must_use]
    pub(crate) fn first(&self) -> Self {
        Self(self.0.iter().take(1).cloned().collect())
    }

    /// The object of a piece, with its MAC where there is a key.
    pub(crate) fn attach(&self, mut object: Vec<u8>) -> Vec<u8> {
        object.extend(self.trailer(Kind::Piece, &object));
        object
    }

    /// Gives what stands behind a file with this SHA-256: nothing where there is no key.
    pub(crate) fn trailer_of_file(&self, sha256: &[u8; 32]) -> Vec<u8> {
        self.trailer(Kind::File, sha256)
    }

    /// The MAC in the last bytes of something, if there is one.
    pub(crate) fn mac_in(trailer: &[u8; TRAILER_BYTES]) -> Option<[u8; MAC_BYTES]> {
        let (mac, mark) = trailer.split_first_chunk::<MAC_BYTES>()?;
        (*mark == MARK).then_some(*mac)
    }

    /// Checks that a file with this SHA-256 has the MAC that it should have. Accepts everything where there is no key.
    pub(crate) fn check_file(&self, name: &str, sha256: &[u8], mac: Option<&[u8; 32]>) -> Result<(), ArchiveError> {
        match mac {
            Some(mac) => self.judge(Kind::File, name, sha256, mac),
            None if self.is_none() => Ok(()),
            None => Err(missing(name)),
        }
    }

    fn trailer(&self, kind: Kind, bytes: &[u8]) -> Vec<u8> {
        self.sign(kind, bytes).map_or_else(Vec::new, |mac| [mac.as_ref(), &MARK[..]].concat())
    }

    /// Gives a piece without its MAC, which has to be right where there is a key.
    pub(crate) fn detach<'b>(&self, object: &str, bytes: &'b [u8]) -> Result<&'b [u8], ArchiveError> {
        let ended = bytes.split_last_chunk::<TRAILER_BYTES>();
        match ended.and_then(|(sealed, trailer)| Self::mac_in(trailer).map(|mac| (sealed, mac))) {
            Some((sealed, mac)) => {
                self.judge(Kind::Piece, object, sealed, &mac)?;
                Ok(sealed)
            }
            None if self.is_none() => Ok(bytes),
            None => Err(missing(object)),
        }
    }

    /// A manifest, in which [`BLANK`] stands in the place of its MAC, with that.
    pub(crate) fn fill(&self, blank: &str) -> Option<String> {
        let mac = self.sign(Kind::Manifest, blank.as_bytes())?;
        replaced(blank, BLANK, &hex(mac.as_ref()))
    }

    /// Checks that a manifest, which says that this is its MAC, is as it was written. Accepts everything where there is no key.
    pub(crate) fn check_manifest(&self, object: &str, bytes: &[u8], mac: Option<&str>) -> Result<(), ArchiveError> {
        if self.is_none() {
            return Ok(());
        }
        let (blank, mac) = blank_of(object, bytes, mac)?;
        self.judge(Kind::Manifest, object, blank.as_bytes(), &mac)
    }

    /// The note of a try of a restore of this cluster's archive, in which [`BLANK`] stands in the place of its MAC, with that.
    pub(crate) fn fill_note(&self, cluster: u128, blank: &str) -> Option<String> {
        let mac = self.sign(Kind::Note, of_cluster(cluster, blank).as_bytes())?;
        replaced(blank, BLANK, &hex(mac.as_ref()))
    }

    /// Checks that a note, which says that this is its MAC, is as it was written for this cluster. Accepts everything where there is no key.
    pub(crate) fn check_note(
        &self,
        object: &str,
        cluster: u128,
        bytes: &[u8],
        mac: Option<&str>,
    ) -> Result<(), ArchiveError> {
        if self.is_none() {
            return Ok(());
        }
        let (blank, mac) = blank_of(object, bytes, mac)?;
        self.judge(Kind::Note, object, of_cluster(cluster, &blank).as_bytes(), &mac)
    }

    fn judge(&self, kind: Kind, object: &str, bytes: &[u8], mac: &[u8]) -> Result<(), ArchiveError> {
        let is_by = |secret: &String| hmac::verify(&key(secret, kind), bytes, mac).is_ok();
        match self.is_none() || self.0.iter().any(is_by) {
            true => Ok(()),
            false => Err(forged(object)),
        }
    }

    fn sign(&self, kind: Kind, bytes: &[u8]) -> Option<hmac::Tag> {
        self.0.first().map(|secret| hmac::sign(&key(secret, kind), bytes))
    }
}

impl fmt::Debug for MacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacKeys({})", self.0.len())
    }
}

/// The key for one kind of objects.
fn key(secret: &str, kind: Kind) -> hmac::Key {
    let whole = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&whole, kind.label()).as_ref())
}

fn missing(object: &str) -> ArchiveError {
    let what = "has no MAC: it was written before there was a key for that, or by somebody who has none. Nothing of it is taken while a key is \
                given; without --mac-key it is read as it is";
    ArchiveError::Locked { object: object.to_owned(), what: what.to_owned() }
}

fn forged(object: &str) -> ArchiveError {
    ArchiveError::Forged { object: object.to_owned() }
}

/// A text as it was before it got this MAC, and the MAC.
fn blank_of(object: &str, bytes: &[u8], mac: Option<&str>) -> Result<(String, Vec<u8>), ArchiveError> {
    let mac = mac.ok_or_else(|| missing(object))?;
    let blank = std::str::from_utf8(bytes).ok().and_then(|text| replaced(text, mac, BLANK));
    blank.zip(unhex(mac)).ok_or_else(|| forged(object))
}

/// A text that is of one cluster alone.
fn of_cluster(cluster: u128, text: &str) -> String {
    format!("{cluster:032x} {text}")
}

/// A text with the last occurrence of a part as another: the field of a MAC is the last of its text.
fn replaced(text: &str, part: &str, by: &str) -> Option<String> {
    let (before, behind) = text.rsplit_once(part)?;
    Some([before, by, behind].concat())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_whole = text.len() == BLANK.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    if is_whole { (0..text.len()).step_by(2).map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(secrets: &[&str]) -> MacKeys {
        MacKeys::parse(&secrets.iter().map(|secret| secret.repeat(32) + "\n").collect::<String>()).unwrap()
    }

    #[test]
    fn a_piece_is_taken_as_it_was_written_alone() {
        let (ours, none) = (keys(&["a"]), MacKeys::default());
        let object = ours.attach(b"sealed".to_vec());
        assert_eq!(ours.detach("piece", &object).unwrap(), b"sealed");
        assert_eq!(none.detach("piece", &object).unwrap(), b"sealed", "without a key all is read");
        assert_eq!(none.detach("piece", b"sealed").unwrap(), b"sealed");
        let refused = ours.detach("piece", b"sealed").unwrap_err();
        assert!(matches!(refused, ArchiveError::Locked { .. }) && refused.to_string().starts_with("piece has no MAC"));
        for at in 0..object.len() {
            let mut wrong = object.clone();
            wrong[at] ^= 4;
            let refused = ours.detach("piece", &wrong).unwrap_err().to_string();
            assert!(refused.starts_with("piece "), "byte {at}: {refused}");
        }
        let foreign = keys(&["b"]).attach(b"sealed".to_vec());
        let refused = ours.detach("piece", &foreign).unwrap_err();
        assert!(matches!(refused, ArchiveError::Forged { .. }), "{refused}");
    }

    #[test]
    fn a_new_key_reads_what_the_old_one_wrote_where_both_are_there() {
        let (old, both) = (keys(&["a"]), keys(&["b", "a"]));
        assert_eq!(both.detach("piece", &old.attach(vec![7])).unwrap(), [7]);
        let by_new = both.attach(vec![7]);
        assert!(matches!(old.detach("piece", &by_new), Err(ArchiveError::Forged { .. })));
        assert_eq!((both.first(), old.first()), (keys(&["b"]), keys(&["a"])));
        assert!(MacKeys::default().first().is_none());
    }

    #[test]
    fn a_manifest_is_taken_as_it_was_written_alone() {
        let (ours, blank) = (keys(&["a"]), format!("{{\"sha256\":\"ab\",\"mac\":\"{BLANK}\"}}"));
        let written = ours.fill(&blank).unwrap();
        let mac = written[blank.find(BLANK).unwrap()..][..BLANK.len()].to_owned();
        ours.check_manifest("manifest", written.as_bytes(), Some(&mac)).unwrap();
        let other = written.replace("\"ab\"", "\"ac\"");
        for (bytes, mac) in [(&other, mac.as_str()), (&written, BLANK), (&written, ""), (&written, "\u{e4}")] {
            let refused = ours.check_manifest("manifest", bytes.as_bytes(), Some(mac)).unwrap_err();
            assert!(matches!(refused, ArchiveError::Forged { .. }), "{mac}: {refused}");
        }
        assert!(matches!(ours.check_manifest("manifest", b"{}", None), Err(ArchiveError::Locked { .. })));
        MacKeys::default().check_manifest("manifest", other.as_bytes(), Some(&mac)).unwrap();
        assert_eq!(MacKeys::default().fill(&blank), None);
    }

    #[test]
    fn a_secret_is_long_and_not_shown() {
        for (text, words) in [("# none\n\n", "holds no secret"), ("short\n", "line 1 has 5 characters")] {
            let refused = MacKeys::parse(text).unwrap_err().to_string();
            assert!(refused.contains(words) && !refused.contains("short"), "{refused}");
        }
        assert!(!format!("{:?}", keys(&["a"])).contains("aaaa"));
    }
}
