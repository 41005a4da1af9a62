//! Encryption, by age: for whom, and with which keys it is opened again.
//!
//! Owns what keys look like and what is said where one is missing or wrong. A node needs only recipients, which are public, so that a
//! thief of its disk cannot read what it archived. A build without the feature `encryption` refuses all of them, and so writes nothing in clear
//! that should be encrypted. <https://age-encryption.org>

#[cfg(not(feature = "encryption"))]
mod left_out;

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

#[cfg(feature = "encryption")]
use age::stream::StreamWriter;
#[cfg(feature = "encryption")]
use age::x25519::{Identity, Recipient};
#[cfg(feature = "encryption")]
use age::{DecryptError, Decryptor, Encryptor};

use crate::ArchiveError;
#[cfg(not(feature = "encryption"))]
use left_out::{Identity, Recipient};

/// What was sealed, to be read.
type Opened<'r> = Result<Box<dyn Read + Send + 'r>, ArchiveError>;

/// For whom an archive is encrypted; for nobody means that it is not.
#[derive(Clone, Default)]
pub struct Recipients(Vec<Recipient>);

impl Recipients {
    /// Reads recipients, `age1…` each.
    ///
    /// # Errors
    /// One that is no recipient.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, ArchiveError> {
        let each = texts.into_iter().map(|text| {
            check_built_in()?;
            Recipient::from_str(text.trim()).map_err(|why| {
                let secret = text.trim().to_ascii_uppercase().starts_with("AGE-SECRET-KEY");
                ArchiveError::Refused(match secret {
                    true => "a recipient is the public half of a key, age1…, and this is a secret one: keep it off the nodes, and make a new one".to_owned(),
                    false => format!("{text:?} is no recipient of age ({why}): it is what `age-keygen` prints as the public key, age1…"),
                })
            })
        });
        each.collect::<Result<_, _>>().map(Self)
    }

    /// Whether anything is encrypted.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes through to `sink`, encrypted where there are recipients.
    #[cfg(feature = "encryption")]
    pub(crate) fn seal<W: Write>(&self, sink: W) -> io::Result<Sealing<W>> {
        if self.0.is_empty() {
            return Ok(Sealing::Plain(sink));
        }
        let each = self.0.iter().map(|recipient| recipient as &dyn age::Recipient);
        let encryptor = Encryptor::with_recipients(each).map_err(io::Error::other)?;
        Ok(Sealing::Age(Box::new(encryptor.wrap_output(sink)?)))
    }

    /// Writes through to `sink`: there are no recipients.
    #[cfg(not(feature = "encryption"))]
    pub(crate) fn seal<W: Write>(&self, sink: W) -> io::Result<Sealing<W>> {
        match self.0.first() {
            None => Ok(Sealing::Plain(sink)),
            Some(recipient) => match *recipient {},
        }
    }
}

/// Whether this build encrypts.
fn check_built_in() -> Result<(), ArchiveError> {
    match cfg!(feature = "encryption") {
        true => Ok(()),
        false => Err(ArchiveError::Refused(LEFT_OUT.to_owned())),
    }
}

/// The error of a program without encryption.
const LEFT_OUT: &str = "this program was built without the feature `encryption` of quorate-archive: the packages have it, and so has what \
                        `scripts/cluster up --full` builds";

/// The recipients, which are public.
impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl PartialEq for Recipients {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for Recipients {}

impl Recipients {
    /// How they are written.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

/// Keys that open what is encrypted. Never shown.
#[derive(Clone, Default)]
pub struct Keys(Vec<Identity>);

impl Keys {
    /// Reads a file as `age-keygen` writes it: an identity a line, `AGE-SECRET-KEY-1…`, and comments behind `#`.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ArchiveError::File { path: path.display().to_string(), source })?;
        Self::parse(&text).map_err(|error| ArchiveError::Refused(format!("{}: {error}", path.display())))
    }

    /// Reads what such a file holds.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, ArchiveError> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                check_built_in()?;
                // What it says instead may be a secret of something else.
                keys.push(Identity::from_str(line).map_err(|_| {
                    let what = "is no identity of age (AGE-SECRET-KEY-1…); `age-keygen -o FILE` makes one";
                    ArchiveError::Refused(format!("line {number} {what}"))
                })?);
            }
        }
        match keys.is_empty() {
            true => Err(ArchiveError::Refused("it holds no key".into())),
            false => Ok(Self(keys)),
        }
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// For whom something is encrypted that these keys open.
    pub fn recipients(&self) -> Recipients {
        Recipients(self.0.iter().map(Identity::to_public).collect())
    }

    /// Reads what was sealed. `object` is its name.
    pub(crate) fn open<'r>(&self, object: &str, is_encrypted: bool, source: impl Read + Send + 'r) -> Opened<'r> {
        if is_encrypted { self.decrypted(object, source) } else { Ok(Box::new(source)) }
    }

    #[cfg(not(feature = "encryption"))]
    fn decrypted<'r>(&self, object: &str, _source: impl Read + Send + 'r) -> Opened<'r> {
        Err(ArchiveError::Locked { object: object.to_owned(), what: format!("is encrypted, and {LEFT_OUT}") })
    }

    #[cfg(feature = "encryption")]
    fn decrypted<'r>(&self, object: &str, source: impl Read + Send + 'r) -> Opened<'r> {
        let locked = |what: &str| ArchiveError::Locked { object: object.to_owned(), what: what.to_owned() };
        if self.0.is_empty() {
            return Err(locked("is encrypted, and no key was given: name the file with it by --key"));
        }
        let failed = |error| match error {
            DecryptError::NoMatchingKeys => locked(
                "is encrypted for somebody else, or its begin is damaged: none of the keys given opens it. Give the key whose public half was in \
                 --archive-recipients, or for a backup in --backup-recipients, when it was written; the manifest of a base names that",
            ),
            DecryptError::Io(error) => of_io(object, &error),
            other => ArchiveError::damaged(object, other.to_string()),
        };
        let decryptor = Decryptor::new(source).map_err(failed)?;
        let keys = self.0.iter().map(|key| key as &dyn age::Identity);
        Ok(Box::new(decryptor.decrypt(keys).map_err(failed)?))
    }
}

/// That an object ends too early or cannot be read.
pub(crate) fn of_io(object: &str, error: &io::Error) -> ArchiveError {
    ArchiveError::damaged(object, error.to_string())
}

/// By their public halves.
impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.recipients() == other.recipients()
    }
}

impl Eq for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

/// Writes what [`Keys::open`] reads.
pub(crate) enum Sealing<W: Write> {
    Plain(W),
    #[cfg(feature = "encryption")]
    Age(Box<StreamWriter<W>>),
}

impl<W: Write> Sealing<W> {
    /// Writes the end. Without it, it is taken for cut short.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(sink) => Ok(sink),
            #[cfg(feature = "encryption")]
            Self::Age(writer) => writer.finish(),
        }
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(sink) => sink.write(bytes),
            #[cfg(feature = "encryption")]
            Self::Age(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.flush(),
            #[cfg(feature = "encryption")]
            Self::Age(writer) => writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

    fn key() -> Keys {
        Keys(vec![age::x25519::Identity::generate()])
    }

    fn sealed(recipients: &Recipients, bytes: &[u8]) -> Vec<u8> {
        let mut sealing = recipients.seal(Vec::new()).unwrap();
        sealing.write_all(bytes).unwrap();
        sealing.finish().unwrap()
    }

    fn opened(keys: &Keys, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut source = keys.open("object", true, bytes).map_err(|error| error.to_string())?;
        let mut read = Vec::new();
        source.read_to_end(&mut read).map_err(|error| error.to_string()).map(|_| read)
    }

    #[test]
    fn any_of_the_keys_opens_it_and_no_other() {
        let (one, two, other) = (key(), key(), key());
        let both = Recipients([one.recipients().0, two.recipients().0].concat());
        let bytes = sealed(&both, &[7; 200_000]);
        assert!(!bytes.windows(32).any(|window| window == [7; 32]), "it is not encrypted");
        for keys in [&one, &two] {
            assert_eq!(opened(keys, &bytes).unwrap(), vec![7; 200_000]);
        }
        let refused = opened(&other, &bytes).unwrap_err();
        assert!(refused.contains("none of the keys given opens it"), "{refused}");
        let refused = opened(&Keys::default(), &bytes).unwrap_err();
        assert!(refused.contains("no key was given"), "{refused}");
    }

    #[test]
    fn every_damage_is_found() {
        let keys = key();
        let bytes = sealed(&keys.recipients(), b"the state of a cluster");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(opened(&keys, &damaged).is_err(), "byte {at}");
            assert!(opened(&keys, &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_file_of_keys_is_read_as_age_keygen_writes_it_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.txt");
        let identity = age::x25519::Identity::generate();
        let public = identity.to_public().to_string();
        let text = format!("# created: today\n# public key: {public}\n{}\n", identity.to_string().expose_secret());
        std::fs::write(&path, text).unwrap();
        let keys = Keys::read(&path).unwrap();
        assert_eq!(keys.recipients().names().collect::<Vec<_>>(), [public]);
        assert_eq!(format!("{keys:?}"), "Keys(1)");
        std::fs::write(&path, "hunter2\n").unwrap();
        let refused = Keys::read(&path).unwrap_err().to_string();
        assert!(refused.contains("line 1") && !refused.contains("hunter2"), "{refused}");
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(Keys::read(&path).unwrap_err().to_string().contains("holds no key"));
        let missing = Keys::read(&dir.path().join("missing")).unwrap_err().to_string();
        assert!(missing.contains("missing"), "{missing}");
    }

    #[test]
    fn a_secret_where_a_recipient_should_be_is_not_repeated() {
        let identity = age::x25519::Identity::generate();
        let secret = identity.to_string().expose_secret().to_owned();
        let refused = Recipients::parse([secret.as_str()]).unwrap_err().to_string();
        assert!(refused.contains("public half") && !refused.contains(&secret), "{refused}");
        let refused = Recipients::parse(["age1no"]).unwrap_err().to_string();
        assert!(refused.contains("age1no"), "{refused}");
    }
}
