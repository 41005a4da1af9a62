//! The token that says who asks.
//!
//! Owns its form on the way to a node. It is shown nowhere: not by `Debug`, and in no error.

use std::path::{Path, PathBuf};

use http::HeaderValue;

use crate::call::error::Error;

/// The environment variable that has the token itself.
pub const TOKEN_ENV: &str = "QUORATE_TOKEN";
/// The environment variable that names the file of [`crate::ClientBuilder::token_file`].
pub const TOKEN_FILE_ENV: &str = "QUORATE_TOKEN_FILE";

/// Where the token comes from.
#[derive(Clone, Default)]
pub(crate) enum TokenSource {
    /// There is none.
    #[default]
    None,
    /// It was given.
    Given(String),
    /// It stands in a file.
    File(PathBuf),
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::None => "None",
            Self::Given(_) => "Given",
            Self::File(_) => "File",
        })
    }
}

impl TokenSource {
    /// What `Authorization` says; `None` without a token.
    pub fn header(&self) -> Result<Option<HeaderValue>, Error> {
        match self {
            Self::None => Ok(None),
            Self::Given(token) => header(token).ok_or_else(|| Error::Invalid(BAD.into())).map(Some),
            Self::File(path) => read(path).map(Some),
        }
    }

    /// Its file, where it stands in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::None | Self::Given(_) => None,
        }
    }
}

const BAD: &str = "the token is not one line of printable ASCII";

fn read(path: &Path) -> Result<HeaderValue, Error> {
    let refused = |why: &str| Error::Invalid(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error.to_string()))?;
    header(&text).ok_or_else(|| refused(BAD))
}

fn header(token: &str) -> Option<HeaderValue> {
    let token = token.trim_end_matches(['\r', '\n']);
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_into_the_header_and_nowhere_else() {
        let given = TokenSource::Given("s3cret".into());
        let header = given.header().expect("a token").expect("there");
        assert_eq!(header, "Bearer s3cret");
        assert!(!format!("{given:?} {header:?}").contains("s3cret"));
        for bad in ["", "s3 cret", "s3cret\nmore", "s3cr\u{e9}t"] {
            let error = TokenSource::Given(bad.into()).header().expect_err("refused");
            assert!(!error.to_string().contains("s3"), "{error}");
        }
        let missing = TokenSource::File("/nowhere/token".into()).header().expect_err("refused");
        assert!(missing.to_string().contains("/nowhere/token"), "{missing}");
    }
}
