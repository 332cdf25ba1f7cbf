//! Control words.
