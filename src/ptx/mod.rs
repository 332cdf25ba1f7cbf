//! The PTX front end: lexer, parser, checks.
