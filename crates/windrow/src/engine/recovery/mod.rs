//! Recovery: how a database becomes open.
//!
//! - [`open`]: the steps from a folder to an engine, the same after a crash and after a clean close.
//! - [`folder`]: what is in the folder, whether that fits together, and the lock.
//! - [`replay`]: reads the logs back.
//! - [`recovered_values`]: checks the values that replayed entries point to.
//! - [`value_order`]: the order of these values.
//! - [`cut`]: what is left of history before damage of the logs, if the options ask for it.
//! - [`destroy`]: removes a database.

mod cut;
pub(super) mod destroy;
pub(super) mod folder;
pub(super) mod open;
mod recovered_values;
pub(super) mod replay;
pub(super) mod value_order;
