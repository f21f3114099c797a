//! librsync's formats and algorithms: signatures, deltas, patches. Pure functions over slices,
//! readers and writers; knows nothing of paths or connections.
#![forbid(unsafe_code)]
