//! The incumbent's verdict on every form of the tables.
