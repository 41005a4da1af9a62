//! Contexts: clusters by name, in a file of the user's.
//!
//! Owns the file: `quorate/config.toml` in `$XDG_CONFIG_HOME`, else in `~/.config`, and in it what each context says. The file is
//! replaced as a whole, and only its owner can read it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fail::Failed;
use crate::form::Form;
use crate::parse;

/// The environment variable that names the file.
pub const CONFIG_ENV: &str = "QUORATE_CONFIG_FILE";
/// Others than the owner.
const OTHERS: u32 = 0o077;

/// What a context says: of a connection, the parts that are not said otherwise.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// As `--endpoints`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<String>,
    /// As `--ca`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// As `--cert`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// As `--key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// As `--token-file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The token itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// As `--timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Time>,
    /// As `--output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Form>,
}

/// A time as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Duration);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", self.0.as_millis()))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse::duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The one that counts where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// By name.
    #[serde(default, rename = "context", skip_serializing_if = "BTreeMap::is_empty")]
    pub all: BTreeMap<String, Setting>,
}

impl Contexts {
    /// The context of this name.
    pub fn named(&self, name: &str) -> Result<Setting, Failed> {
        self.all.get(name).cloned().ok_or_else(|| unknown(name))
    }

    /// The current one; one that says nothing where there is none.
    pub fn current(&self) -> Result<Setting, Failed> {
        self.current.as_ref().map_or_else(|| Ok(Setting::default()), |name| self.named(name))
    }

    /// Replaces the file.
    pub fn save(&self) -> Result<(), Failed> {
        let path = path()?;
        let text =
            toml::to_string_pretty(self).map_err(|error| Failed::other(format!("contexts have no TOML: {error}")))?;
        write(&path, &text).map_err(|error| Failed::other(format!("cannot write {}: {error}", path.display())))
    }
}

/// There is no such context.
pub fn unknown(name: &str) -> Failed {
    Failed::usage(format!("there is no context `{name}`; `quorate context list` shows those that there are"))
}

/// What the file says; nothing where there is none.
pub fn load() -> Result<Contexts, Failed> {
    let Ok(path) = path() else { return Ok(Contexts::default()) };
    let refused = |why: String| Failed::usage(format!("{}: {why}", path.display()));
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contexts::default()),
        Err(error) => return Err(refused(error.to_string())),
    };
    let contexts: Contexts = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let mode = fs::metadata(&path).map_err(|error| refused(error.to_string()))?.permissions().mode();
    if mode & OTHERS != 0 && contexts.all.values().any(|setting| setting.token.is_some()) {
        return Err(refused("holds a token, and others can read it; `chmod 600` it".into()));
    }
    Ok(contexts)
}

/// Where the file is.
pub fn path() -> Result<PathBuf, Failed> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = var(CONFIG_ENV) {
        return Ok(path);
    }
    let home = var("XDG_CONFIG_HOME").or_else(|| Some(var("HOME")?.join(".config")));
    let home = home.ok_or_else(|| Failed::usage("neither XDG_CONFIG_HOME nor HOME says where the contexts are"))?;
    Ok(home.join("quorate/config.toml"))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{:08x}", rand::random::<u32>()));
    let new = PathBuf::from(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
