//! `scripts/package`: twice the same bytes, with everything in them, and no word in the sums that is not true.
//!
//! Packs the programs that were built for the tests, so it says nothing about how a release is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::guide::built;

/// Packs into a directory as somebody with this umask and in this time zone would. Compared with itself, it is found to be the same.
fn packed(umask: &str, zone: &str) -> tempfile::TempDir {
    let out = tempfile::tempdir().expect("a temporary directory");
    let done = pack_into(out.path(), umask, zone, &["--compare", out.path().to_str().expect("UTF-8")]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

fn pack_into(out: &Path, umask: &str, zone: &str, more: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/package");
    let mut command = Command::new("sh");
    command.args(["-c", "umask $1; shift; exec \"$@\"", "sh", umask]).arg(script);
    command.arg("--out").arg(out).arg("--programs").arg(built("quorate").parent().expect("a directory")).args(more);
    command.env("TZ", zone).env("SOURCE_DATE_EPOCH", "1700000000");
    command.output().expect("there is a shell")
}

/// A key to sign with, and how those who verify know it; nothing where there is no ssh-keygen.
fn signing_key(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let (key, signers) = (dir.join("key"), dir.join("allowed_signers"));
    let mut make = Command::new("ssh-keygen");
    make.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(&key);
    if !make.output().ok()?.status.success() {
        return None;
    }
    let public = std::fs::read_to_string(key.with_extension("pub")).expect("it was made");
    std::fs::write(&signers, format!("releases@quorate {public}")).expect("it can be written");
    Some((key, signers))
}

/// Whether the sums in a directory are signed, as docs/install.md has it verified.
fn is_signed(dir: &Path, signers: &Path) -> bool {
    let sums = std::fs::File::open(dir.join("SHA256SUMS")).expect("there are sums");
    let mut verify = Command::new("ssh-keygen");
    verify.args(["-Y", "verify", "-n", "quorate-release", "-I", "releases@quorate", "-f"]).arg(signers);
    verify.args(["-s", "SHA256SUMS.sig"]).current_dir(dir).stdin(sums);
    verify.output().expect("ssh-keygen").status.success()
}

/// A bill of materials names what the licences name, each with its checksum, and nothing that it does not have.
fn assert_is_bill(text: &str, third_party: &str) {
    let bill: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.6")));
    let components = bill["components"].as_array().expect("a list");
    let refs: BTreeSet<_> = components.iter().filter_map(|each| each["bom-ref"].as_str()).collect();
    assert_eq!(refs.len(), components.len(), "each stands there once");
    for name in ["pkg:cargo/rocksdb@", "pkg:cargo/openraft@", "pkg:cargo/quorate-node@", "pkg:npm/preact@"] {
        assert!(refs.iter().any(|each| each.starts_with(name)), "{name} is missing");
    }
    let of_others =
        components.iter().filter(|each| !each["name"].as_str().is_some_and(|name| name.starts_with("quorate")));
    let of_others: Vec<_> = of_others.collect();
    assert!(of_others.iter().all(|each| each["hashes"][0]["content"].is_string()), "each has a checksum");
    let crates =
        of_others.iter().filter(|each| each["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo")));
    for each in crates {
        let line = format!("\n{} {}: ", each["name"].as_str().expect("a name"), each["version"].as_str().expect("one"));
        assert!(third_party.contains(&line), "the licences do not know {line}");
    }
    for link in bill["dependencies"].as_array().expect("a list") {
        let on = link["dependsOn"].as_array().expect("a list");
        assert!(on.iter().all(|each| refs.contains(each.as_str().expect("a name"))), "{link} leads nowhere");
    }
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

const IN_BOTH: [&str; 14] = [
    "bin/quorate",
    "bin/quorate-node",
    "lib/systemd/system/quorate-node.service",
    "share/bash-completion/completions/quorate",
    "share/doc/quorate/README.md",
    "share/doc/quorate/bill-of-materials.cdx.json",
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

/// Packs once more, compared with a package whose bill of materials is another one: that is named, down to the member, and nothing else.
fn packed_beside_another(one: &Path, scratch: &Path, umask: &str, zone: &str, more: &[&str]) -> tempfile::TempDir {
    let (changed, out) = (scratch.join("changed"), tempfile::tempdir().expect("a temporary directory"));
    std::fs::create_dir(&changed).expect("it can be made");
    for (name, bytes) in contents(one) {
        let bytes = if name.ends_with(".cdx.json") { b"{}".to_vec() } else { bytes };
        std::fs::write(changed.join(name), bytes).expect("it can be written");
    }
    let compare = ["--compare", changed.to_str().expect("UTF-8")];
    let done = pack_into(out.path(), umask, zone, &[&compare[..], more].concat());
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains(".cdx.json differs") && !said.contains("tar.gz differs"), "{said}");
    out
}

#[test]
fn two_packages_of_the_same_programs_are_the_same_and_have_what_is_needed() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let key = signing_key(keys.path());
    let one = packed("022", "UTC");
    let sign: Vec<_> = key.iter().flat_map(|(key, _)| ["--sign", key.to_str().expect("UTF-8")]).collect();
    let other = packed_beside_another(one.path(), keys.path(), "077", "Asia/Tokyo", &sign);
    if let Some((_, signers)) = &key {
        assert!(is_signed(other.path(), signers), "signed by the key");
        let another = tempfile::tempdir().expect("a temporary directory");
        let (_, others) = signing_key(another.path()).expect("there is ssh-keygen");
        assert!(!is_signed(other.path(), &others), "by that key alone");
        let sums = std::fs::read_to_string(other.path().join("SHA256SUMS")).expect("sums");
        std::fs::write(other.path().join("SHA256SUMS"), sums.replace('a', "b")).expect("written");
        assert!(!is_signed(other.path(), signers), "for those sums alone");
        std::fs::write(other.path().join("SHA256SUMS"), sums).expect("written");
        std::fs::remove_file(other.path().join("SHA256SUMS.sig")).expect("it was there");
    }
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
    let text =
        |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let bill = text(&files.join("share/doc/quorate/bill-of-materials.cdx.json"));
    assert_is_bill(&bill, &text(&files.join("share/doc/quorate/THIRD-PARTY")));
    let beside = format!("quorate-{}.cdx.json", env!("CARGO_PKG_VERSION"));
    assert_eq!(bill, text(&one.path().join(beside)), "the same beside the packages");
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
