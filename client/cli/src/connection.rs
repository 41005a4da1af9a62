//! Which cluster, and as whom: by flags, by the environment, by a context.
//!
//! Owns the order of these, the client that comes of them, and how all of it is handed on to a command that we run. What a context
//! is, and its file, is `contexts`'.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_client::{
    CA_ENV, CERT_ENV, Client, ClientBuilder, DEFAULT_ENDPOINTS, ENDPOINTS_ENV, KEY_ENV, TOKEN_ENV, TOKEN_FILE_ENV,
};

use crate::contexts::{self, Setting};
use crate::fail::Failed;
use crate::form::Form;
use crate::refined::Refined;
use crate::{GLOBAL, parse};

/// The environment variable that names a context.
pub const CONTEXT_ENV: &str = "QUORATE_CONTEXT";
/// Deadline of a request, where nothing else is said.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// What all commands understand of it. A flag counts more than the environment, and that more than a context.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// Nodes, host:port, separated by commas; https:// may stand before each, and unix:/PATH is a socket of this machine. Without it those of the context, else the local
    /// cluster.
    #[arg(short, long, global = true, env = ENDPOINTS_ENV, value_name = "LIST", help_heading = GLOBAL)]
    pub endpoints: Option<String>,
    /// Deadline of each request, retries included; like 500ms, 10s, 2m. 10s if not given.
    #[arg(long, global = true, env = "QUORATE_TIMEOUT", value_parser = parse::duration, value_name = "TIME", help_heading = GLOBAL)]
    pub timeout: Option<Duration>,
    /// PEM file with the CAs whose certificates of nodes are believed: the nodes are then reached by TLS.
    #[arg(long = "ca", global = true, env = CA_ENV, value_name = "FILE", help_heading = GLOBAL)]
    pub ca: Option<PathBuf>,
    /// PEM file with the certificate that nodes are shown: who this is.
    #[arg(long = "cert", global = true, env = CERT_ENV, requires = "tls_key", value_name = "FILE", help_heading = GLOBAL)]
    pub cert: Option<PathBuf>,
    /// PEM file with its private key.
    #[arg(id = "tls_key", long = "key", global = true, env = KEY_ENV, requires = "cert", value_name = "FILE", help_heading = GLOBAL)]
    pub key: Option<PathBuf>,
    /// File with the token that says who this is; without it the one in the environment variable QUORATE_TOKEN.
    #[arg(long, global = true, env = TOKEN_FILE_ENV, value_name = "FILE", help_heading = GLOBAL)]
    pub token_file: Option<PathBuf>,
    /// The context to use instead of the current one; see `quorate context --help`.
    #[arg(short, long, global = true, env = CONTEXT_ENV, value_name = "NAME", help_heading = GLOBAL)]
    pub context: Option<String>,
}

/// The token, and where it is. The token itself is no argument: whoever lists processes would read it.
#[derive(Clone, PartialEq, Eq)]
enum Token {
    None,
    Given(String),
    File(PathBuf),
}

/// A way to a cluster, as somebody.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    endpoints: String,
    /// Deadline of each request.
    pub timeout: Duration,
    ca: Option<PathBuf>,
    /// Certificate and key.
    identity: Option<(PathBuf, PathBuf)>,
    token: Token,
    /// The form of the output that the context asks for.
    pub output: Option<Form>,
}

impl Flags {
    /// As they are typed.
    pub fn arguments(&self) -> Vec<OsString> {
        let time = self.timeout.map(|time| OsString::from(format!("{}ms", time.as_millis())));
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.clone().into_os_string());
        let said = [
            ("--endpoints", self.endpoints.as_ref().map(OsString::from)),
            ("--timeout", time),
            ("--ca", path(&self.ca)),
            ("--cert", path(&self.cert)),
            ("--key", path(&self.key)),
            ("--token-file", path(&self.token_file)),
            ("--context", self.context.as_ref().map(OsString::from)),
        ];
        said.into_iter().filter_map(|(name, value)| Some([name.into(), value?])).flatten().collect()
    }
}

impl Connection {
    /// What was asked for.
    pub fn new(flags: &Flags) -> Result<Self, Failed> {
        let token = std::env::var(TOKEN_ENV).ok().filter(|token| !token.is_empty());
        // Who names nodes does not mean those of a context, and must not show them its token.
        let setting = match (&flags.context, &flags.endpoints) {
            (Some(name), _) if !name.is_empty() => contexts::load()?.named(name)?,
            (None, None) => contexts::load()?.current()?,
            _ => Setting::default(),
        };
        Ok(Self::of(flags, token, setting))
    }

    fn of(flags: &Flags, token: Option<String>, setting: Setting) -> Self {
        let pair = |cert: &Option<PathBuf>, key: &Option<PathBuf>| Some((cert.clone()?, key.clone()?));
        let token = match (&flags.token_file, token, setting.token_file, setting.token) {
            (Some(file), ..) => Token::File(file.clone()),
            (None, Some(token), ..) => Token::Given(token),
            (None, None, Some(file), _) => Token::File(file),
            (None, None, None, Some(token)) => Token::Given(token),
            (None, None, None, None) => Token::None,
        };
        Self {
            endpoints: flags.endpoints.clone().or(setting.endpoints).unwrap_or_else(|| DEFAULT_ENDPOINTS.to_owned()),
            timeout: flags.timeout.or(setting.timeout.map(|time| time.0)).unwrap_or(TIMEOUT_DEFAULT),
            ca: flags.ca.clone().or(setting.ca),
            identity: pair(&flags.cert, &flags.key).or_else(|| pair(&setting.cert, &setting.key)),
            token,
            output: setting.output,
        }
    }

    /// A client of it, to be refined.
    pub fn client(&self) -> ClientBuilder {
        let builder = Client::builder().endpoints(&self.endpoints).timeout(self.timeout);
        let builder = builder
            .given(self.ca.as_ref(), |builder, ca| builder.ca_file(ca))
            .given(self.identity.as_ref(), |builder, (cert, key)| builder.identity_files(cert, key));
        match &self.token {
            Token::None => builder,
            Token::Given(token) => builder.token(token),
            Token::File(file) => builder.token_file(file),
        }
    }

    /// Lets a command that we run reach the same cluster as the same user, whatever said which that is.
    pub fn hand_on(&self, command: &mut std::process::Command) {
        // It may run elsewhere.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let identity = self.identity.as_ref();
        let (token, file) = match &self.token {
            Token::None => (None, None),
            Token::Given(token) => (Some(token.into()), None),
            Token::File(file) => (None, Some(absolute(file).into_os_string())),
        };
        let path = |path: Option<&PathBuf>| path.map(|path| absolute(path).into_os_string());
        for (name, value) in [
            (ENDPOINTS_ENV, Some(self.endpoints.clone().into())),
            (CONTEXT_ENV, None),
            (CA_ENV, path(self.ca.as_ref())),
            (CERT_ENV, path(identity.map(|(cert, _)| cert))),
            (KEY_ENV, path(identity.map(|(_, key)| key))),
            (TOKEN_ENV, token),
            (TOKEN_FILE_ENV, file),
        ] {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> Flags {
        Flags { endpoints: None, timeout: None, ca: None, cert: None, key: None, token_file: None, context: None }
    }

    fn context() -> Setting {
        let text = "endpoints = 'c:1'\nca = '/c/ca'\ncert = '/c/crt'\nkey = '/c/key'\ntoken = 'secret'\ntimeout = '3s'";
        toml::from_str(text).expect("a setting")
    }

    #[test]
    fn a_flag_counts_more_than_the_environment_and_that_more_than_a_context() {
        let plain = Connection::of(&flags(), None, Setting::default());
        assert_eq!((plain.endpoints.as_str(), plain.timeout, plain.ca), (DEFAULT_ENDPOINTS, TIMEOUT_DEFAULT, None));
        let of_context = Connection::of(&flags(), None, context());
        assert_eq!((of_context.endpoints.as_str(), of_context.timeout), ("c:1", Duration::from_secs(3)));
        assert_eq!(of_context.identity, Some(("/c/crt".into(), "/c/key".into())));
        assert!(of_context.token == Token::Given("secret".into()));
        let from_env = Connection::of(&flags(), Some("env".into()), context());
        assert!(from_env.token == Token::Given("env".into()));
        let given = Flags { token_file: Some("f".into()), ca: Some("/f/ca".into()), ..flags() };
        let by_flag = Connection::of(&given, Some("env".into()), context());
        assert!(by_flag.token == Token::File("f".into()) && by_flag.ca == Some("/f/ca".into()));
        assert_eq!(by_flag.endpoints, "c:1");
    }

    #[test]
    fn a_command_gets_all_of_the_connection_and_nothing_of_another() {
        let given = Flags { endpoints: Some("https://n:1".into()), ca: Some("ca.crt".into()), ..flags() };
        let connection = Connection::of(&Flags { token_file: Some("/t".into()), ..given }, None, Setting::default());
        let mut command = std::process::Command::new("true");
        command.env(TOKEN_ENV, "another").env(CONTEXT_ENV, "another");
        connection.hand_on(&mut command);
        let env = |name: &str| {
            let told = command.get_envs().find(|(known, _)| *known == name).expect("is decided");
            told.1.map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(env(ENDPOINTS_ENV).as_deref(), Some("https://n:1"));
        assert_eq!(env(CA_ENV), std::path::absolute("ca.crt").ok().map(|path| path.display().to_string()));
        assert_eq!(env(TOKEN_FILE_ENV).as_deref(), Some("/t"));
        for name in [TOKEN_ENV, CONTEXT_ENV, CERT_ENV, KEY_ENV] {
            assert_eq!(env(name), None, "{name}");
        }
    }
}
