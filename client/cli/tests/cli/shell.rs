//! `quorate shell` at a terminal of its own: lines, completion, history, the end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use quorate_client::api::OpKind;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::fake::Fake;

const UP: &str = "\x1b[A";
const INTERRUPT: &str = "\x03";
const END_OF_INPUT: &str = "\x04";
const PROMPT: &str = "quorate> ";

/// Both ends of a new terminal: ours and that of the program.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both numbers are written before they are read, and the size outlives the call; null asks for no name and for settings
    // as usual.
    let made = unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(made, 0, "no terminal: {}", std::io::Error::last_os_error());
    // SAFETY: both were just opened, and nothing else has them.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

/// Somebody at a terminal, with a shell on it.
struct Typist {
    keys: File,
    shown: mpsc::UnboundedReceiver<Vec<u8>>,
    /// What was shown behind what was waited for last.
    rest: String,
    shell: Child,
}

impl Typist {
    fn start(fake: &Fake, home: &Path) -> Self {
        let (ours, theirs) = terminal();
        let end = || Stdio::from(theirs.try_clone().expect("one more"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["--endpoints", &fake.address, "shell"]).env("XDG_STATE_HOME", home).env("TERM", "xterm");
        command.stdin(end()).stdout(end()).stderr(end()).kill_on_drop(true);
        let shell = command.spawn().expect("it runs");
        let keys = File::from(ours);
        let (mut screen, (show, shown)) = (keys.try_clone().expect("one more"), mpsc::unbounded_channel());
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // The last program at the terminal being gone is an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if show.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys, shown, rest: String::new(), shell }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("somebody reads");
    }

    /// Waits until this is shown, behind what was waited for before.
    async fn sees(&mut self, text: &str) {
        let seen = async {
            while !self.rest.contains(text) {
                let more = self.shown.recv().await.ok_or("the terminal is closed")?;
                self.rest.push_str(&String::from_utf8_lossy(&more));
            }
            Ok::<_, &str>(())
        };
        let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
        assert!(matches!(seen, Ok(Ok(()))), "`{text}` is not shown ({seen:?}), but: {:?}", self.rest);
        let end = self.rest.find(text).expect("it is there") + text.len();
        self.rest.drain(..end);
    }

    /// Exit code of the shell.
    async fn ends(mut self) -> Option<i32> {
        let end = tokio::time::timeout(Duration::from_secs(20), self.shell.wait()).await;
        end.expect("it ends").expect("it ran").code()
    }
}

fn kinds(fake: &Fake) -> Vec<OpKind> {
    fake.seen().into_iter().filter_map(|seen| seen.op).map(|op| op.op).collect()
}

#[tokio::test]
async fn a_shell_completes_and_remembers_what_is_typed() {
    let (fake, home) = (Fake::start().await, tempfile::tempdir().expect("a directory"));
    let mut typist = Typist::start(&fake, home.path());
    typist.sees(PROMPT).await;
    typist.types("put k '{\"n\": 1}'\r");
    typist.sees("written: k  cas 8").await;
    typist.sees(PROMPT).await;
    // Neither ends it.
    typist.types("half a line");
    typist.sees("half a line").await;
    typist.types(INTERRUPT);
    typist.sees(PROMPT).await;
    typist.types("get k | wc\r");
    typist.sees("`|` is for a shell of the system").await;
    typist.sees(PROMPT).await;
    typist.types("fly\r");
    typist.sees("Usage:").await;
    typist.sees("[1mquorate").await;
    typist.sees(PROMPT).await;
    typist.types("inser\t k 2\r");
    typist.sees("written: k").await;
    typist.sees(PROMPT).await;
    // Keys are those of the cluster.
    typist.types("get \t");
    typist.sees("get k").await;
    typist.types("\r");
    typist.sees("{\"n\":1}").await;
    typist.sees(PROMPT).await;
    typist.types(&format!("{UP}{UP}\r"));
    typist.sees("written: k").await;
    typist.sees(PROMPT).await;
    typist.types("exit\r");
    assert_eq!(typist.ends().await, Some(0));
    let expected = [OpKind::Upsert, OpKind::Insert, OpKind::Get, OpKind::Insert];
    assert_eq!(kinds(&fake), expected, "{:?}", fake.seen());

    let kept = std::fs::read_to_string(home.path().join("quorate/history")).expect("a history");
    for line in ["put k '{\"n\": 1}'", "get k | wc", "insert k 2", "exit"] {
        assert!(kept.lines().any(|kept| kept == line), "`{line}` is not in {kept}");
    }
    let mut typist = Typist::start(&fake, home.path());
    typist.sees(PROMPT).await;
    // `exit` is the last line.
    typist.types(&format!("{UP}{UP}\r"));
    typist.sees("written: k").await;
    typist.sees(PROMPT).await;
    typist.types(END_OF_INPUT);
    assert_eq!(typist.ends().await, Some(0));
    assert_eq!(kinds(&fake).len(), expected.len() + 1);
}
