//! The PTX front end: lexer, parser, checks.

pub mod ast;
