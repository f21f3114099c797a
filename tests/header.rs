//! The committed header is the one that the sources make. `UPDATE_HEADER=1` writes it.

use std::error::Error;
use std::path::Path;

/// Where the exported functions and their types are, in the header's order.
const SOURCES: [&str; 8] = [
    "dropin.rs",
    "registered.rs",
    "status.rs",
    "options.rs",
    "callbacks.rs",
    "engine.rs",
    "verbs.rs",
    "tls.rs",
];

#[test]
fn the_committed_header_is_not_stale() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = root.join("include/csync_rs.h");
    let mut made = Vec::new();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    SOURCES
        .iter()
        .fold(
            cbindgen::Builder::new().with_config(config),
            |builder, source| builder.with_src(root.join("src/ffi").join(source)),
        )
        .generate()?
        .write(&mut made);
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&committed, &made)?;
    }
    assert!(
        std::fs::read(&committed)? == made,
        "include/csync_rs.h is stale: make header"
    );
    Ok(())
}
