//! The committed header is the one that the sources make. `UPDATE_HEADER=1` writes it.

use std::error::Error;
use std::path::Path;

/// Where the exported functions and their types are, in the header's order.
const SOURCES: [&str; 9] = [
    "dropin.rs",
    "pipeline.rs",
    "registered.rs",
    "status.rs",
    "options.rs",
    "callbacks.rs",
    "engine.rs",
    "verbs.rs",
    "tls.rs",
];

/// Where those of the feature `rustls-ffi` are, which have a header of their own.
const RUSTLS_SOURCES: [&str; 1] = ["over_rustls.rs"];

fn check(header: &str, config: &str, sources: &[&str]) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = root.join("include").join(header);
    let mut made = Vec::new();
    let config = cbindgen::Config::from_file(root.join(config))?;
    sources
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
        "include/{header} is stale: make header"
    );
    Ok(())
}

#[test]
fn the_committed_header_is_not_stale() -> Result<(), Box<dyn Error>> {
    check("csync_rs.h", "cbindgen.toml", &SOURCES)
}

#[test]
fn the_header_for_rustls_is_not_stale() -> Result<(), Box<dyn Error>> {
    check("csync_rs_rustls.h", "cbindgen-rustls.toml", &RUSTLS_SOURCES)
}
