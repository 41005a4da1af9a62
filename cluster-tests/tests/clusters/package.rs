//! `scripts/package`: twice the same bytes, with everything in them, and no word in the sums that is not true.
//!
//! Packs the programs that were built for the tests, so it says nothing about how a release is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::guide::built;

/// Packs into a directory as somebody with this umask and in this time zone would.
fn packed(umask: &str, zone: &str) -> tempfile::TempDir {
    let out = tempfile::tempdir().expect("a temporary directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/package");
    let mut command = Command::new("sh");
    command.args(["-c", "umask $1; shift; exec \"$@\"", "sh", umask]).arg(script);
    command.arg("--out").arg(out.path()).arg("--programs").arg(built("quorate").parent().expect("a directory"));
    command.env("TZ", zone).env("SOURCE_DATE_EPOCH", "1700000000");
    let done = command.output().expect("there is a shell");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().expect("UTF-8");
        (name, std::fs::read(entry.path()).expect("a file"))
    };
    entries.map(named).collect()
}

/// What a program prints.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

fn with_end(dir: &Path, end: &str) -> Option<PathBuf> {
    let name = contents(dir).into_keys().find(|name| name.ends_with(end))?;
    Some(dir.join(name))
}

const IN_BOTH: [&str; 13] = [
    "bin/quorate",
    "bin/quorate-node",
    "lib/systemd/system/quorate-node.service",
    "share/bash-completion/completions/quorate",
    "share/doc/quorate/README.md",
    "share/doc/quorate/docs/guide.md",
    "share/doc/quorate/docs/install.md",
    "share/doc/quorate/docs/operations.md",
    "share/doc/quorate/examples/node-of-three.toml",
    "share/fish/vendor_completions.d/quorate.fish",
    "share/man/man1/quorate-node.1.gz",
    "share/man/man1/quorate-node-config-check.1.gz",
    "share/man/man1/quorate.1.gz",
];

fn assert_lists(listing: &str, prefix: &str, names: &[&str]) {
    for name in names {
        let path = format!("{prefix}{name}");
        assert!(listing.lines().any(|line| line.ends_with(&path)), "{path} is missing in\n{listing}");
    }
}

/// The files below a directory.
fn files_under(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

/// Where the links and pictures of a document lead to, but for those to the web and within itself.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let starts = [" src=\"", " srcset=\""].into_iter();
    let shown = starts.flat_map(|start| text.split(start).skip(1)).filter_map(|rest| rest.split('"').next());
    linked.chain(shown).filter(|target| !target.is_empty() && !target.contains("://"))
}

/// Who reads the documents of a package has no checkout beside them.
fn assert_documents_lead_somewhere(root: &Path) {
    let documents: Vec<_> =
        files_under(root).into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    let mut followed = 0;
    for document in &documents {
        let text = std::fs::read_to_string(document).expect("text");
        for link in links(&text) {
            let target = document.parent().expect("a directory").join(link);
            assert!(target.is_file(), "{} has a link to {link}, which is not in the package", document.display());
            followed += 1;
        }
    }
    assert!(documents.len() > 3 && followed > 10, "{followed} links in {documents:?}");
}

/// What `systemctl help` and `systemctl status` name.
fn assert_unit_names_a_document(unit: &str, prefix: &str, files: &Path) {
    let named = unit.lines().find_map(|line| line.strip_prefix("Documentation=file://")).expect("documentation");
    let name = named.strip_prefix(prefix).unwrap_or_else(|| panic!("{named} is not below {prefix}"));
    assert!(files.join(name).is_file(), "the unit names {named}, which is not in the package");
}

#[test]
fn two_packages_of_the_same_programs_are_the_same_and_have_what_is_needed() {
    let (one, other) = (packed("022", "UTC"), packed("077", "Asia/Tokyo"));
    let (first, second) = (contents(one.path()), contents(other.path()));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs between two runs");
    }
    output(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(one.path()));

    let archive = with_end(one.path(), "-linux.tar.gz").expect("an archive");
    let listing = output(Command::new("tar").arg("-tvzf").arg(&archive));
    let root = format!("quorate-{}-{}-linux/", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    assert_lists(&listing, &root, &IN_BOTH);
    let of_archive = ["share/doc/quorate/LICENSE", "share/doc/quorate/THIRD-PARTY", "lib/sysusers.d/quorate.conf"];
    assert_lists(&listing, &root, &of_archive);
    assert!(listing.lines().all(|line| line.contains(" 0/0 ")), "all of it is of root:\n{listing}");
    let place = tempfile::tempdir().expect("a temporary directory");
    output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place.path()));
    let files = place.path().join(&root);
    assert_documents_lead_somewhere(&files);
    let unit = std::fs::read_to_string(files.join("lib/systemd/system/quorate-node.service")).expect("a unit");
    assert_unit_names_a_document(&unit, "/usr/local/", &files);

    // Where nothing is called dpkg-deb, no package for Debian is made, and so none is looked at.
    let Some(package) = with_end(one.path(), ".deb") else {
        println!("there is no dpkg-deb here");
        return;
    };
    let listing = output(Command::new("dpkg-deb").arg("--contents").arg(&package));
    assert_lists(&listing, " ./usr/", &IN_BOTH);
    assert_lists(&listing, " ./", &["etc/quorate/node.toml", "usr/share/doc/quorate/copyright"]);
    let conffiles = output(Command::new("dpkg-deb").arg("--info").arg(&package).arg("conffiles"));
    assert_eq!(conffiles, "/etc/quorate/node.toml\n");
    let unpacked = place.path().join("unpacked");
    output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unpacked));
    let unit = std::fs::read_to_string(unpacked.join("usr/lib/systemd/system/quorate-node.service")).expect("a unit");
    assert!(unit.contains("ExecStart=/usr/bin/quorate-node ") && !unit.contains("/usr/local/"), "{unit}");
    assert_unit_names_a_document(&unit, "/usr/", &unpacked.join("usr"));
    let version = output(Command::new(unpacked.join("usr/bin/quorate-node")).arg("--version"));
    assert_eq!(version.trim(), format!("quorate-node {}", env!("CARGO_PKG_VERSION")));
}
