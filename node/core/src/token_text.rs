//! The text of a token: `qt_`, its public id, `_`, its secret; or of an invitation of a newcomer, which begins with `qj_`.
//!
//! Owns making one, reading one and the hash of it. Never keeps or compares one, and never shows one but by
//! [`TokenText::reveal`].

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quorate_machine::types::{SecretHash, TokenId};
use sha2::{Digest, Sha256};

/// What the text of a token begins with: whoever looks for secrets in a heap of text finds them by it.
const MARK: &str = "qt_";
/// [`MARK`] of an invitation.
const INVITATION_MARK: &str = "qj_";

/// Characters of 256 bits in base64.
const SECRET_CHARS: usize = 43;

/// A token as its bearer has it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    /// Its public id.
    pub id: TokenId,
    secret: [u8; 32],
    mark: &'static str,
}

/// Silent but for the id.
impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({}, ..)", self.id)
    }
}

impl TokenText {
    /// A new one. The generator of the process is one for cryptography, seeded by the operating system.
    pub fn make() -> Self {
        Self { id: TokenId(rand::random()), secret: rand::random(), mark: MARK }
    }

    /// A new invitation.
    pub fn make_invitation() -> Self {
        Self { mark: INVITATION_MARK, ..Self::make() }
    }

    /// Reads one; `None` where the text is none.
    pub fn read(text: &str) -> Option<Self> {
        Self::read_marked(text, MARK)
    }

    /// Reads an invitation; `None` where the text is none.
    pub fn read_invitation(text: &str) -> Option<Self> {
        Self::read_marked(text, INVITATION_MARK)
    }

    fn read_marked(text: &str, mark: &'static str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(mark)?.split_at_checked(TokenId::TEXT_BYTES)?;
        let secret = secret.strip_prefix('_').filter(|secret| secret.len() == SECRET_CHARS)?;
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        Some(Self { id: id.parse().ok()?, secret, mark })
    }

    /// Its text: for who asked for it, and nobody else.
    pub fn reveal(&self) -> String {
        format!("{}{}_{}", self.mark, self.id, URL_SAFE_NO_PAD.encode(self.secret))
    }

    /// What is kept of its secret.
    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.secret).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_from_its_text_and_nothing_else_is_one() {
        let token = TokenText::make();
        let text = token.reveal();
        assert_eq!(text.len(), MARK.len() + TokenId::TEXT_BYTES + 1 + SECRET_CHARS);
        assert_eq!(TokenText::read(&text), Some(token.clone()));
        assert_ne!(TokenText::make().hash(), token.hash());
        for wrong in ["", "qt_", &text[1..], &text[..text.len() - 1], &format!("{text}A"), &text.replace("qt_", "qt-")]
        {
            assert_eq!(TokenText::read(wrong), None, "{wrong}");
        }
        assert_eq!(TokenText::read(&format!("{}é", &text[..text.len() - 2])), None);
        let invitation = TokenText::make_invitation();
        assert_eq!(TokenText::read_invitation(&invitation.reveal()), Some(invitation.clone()));
        assert_eq!(TokenText::read(&invitation.reveal()), None, "an invitation is nobody's token");
        assert_eq!(TokenText::read_invitation(&text), None);
    }

    #[test]
    fn the_hash_is_sha_256_of_the_bytes_of_the_secret_and_is_not_shown() {
        let token = TokenText { id: TokenId(0x12), secret: [0; 32], mark: MARK };
        let SecretHash(hash) = token.hash();
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925");
        assert_eq!(format!("{token:?}"), "TokenText(0000000000000012, ..)");
    }
}
