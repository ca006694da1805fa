//! The policy carried out on numbers.

mod amplification;
mod model;
mod properties;
mod tables;
