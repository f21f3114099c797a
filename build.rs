//! Compiles the C file that names the host's symbols as weak references, and gives the shared library its name.

fn main() {
    println!("cargo:rerun-if-changed=src/ffi/linked_host.c");
    let mut build = cc::Build::new();
    build
        .file("src/ffi/linked_host.c")
        .std("c11")
        .warnings(true)
        .extra_warnings(true);
    // A distribution's -flto would leave nothing but intermediate code in the object, which rustc's linker call drops.
    build.flag_if_supported("-ffat-lto-objects");
    build.compile("csync_rs_linked_host");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcsync_rs.so.{major}");
}
