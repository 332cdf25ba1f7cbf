//! The PTX front end: lexer, parser, checks.
//!
//! Input: the text of one PTX file. Output: [`ast::Module`] with every name resolved and every instruction matched to a
//! row of `tables/ptx`, and diagnostics. Invariants: any text gives an answer, without a panic, in time linear in its
//! length; a module comes out only when there is no error.

mod arguments;
pub mod ast;
mod body;
mod constant;
mod function;
mod initializer;
mod instruction;
mod lexer;
mod matching;
mod module;
mod operand;
mod parser;
mod requirements;
mod scope;
#[cfg(test)]
mod tests;
mod variable;

use crate::diag::Diagnostic;
use ast::{Module, Target};
use cranelift_entity::PrimaryMap;
use parser::Parser;

/// Longest text in bytes; positions are 32 bits.
const MAX_SOURCE: usize = 1 << 30;

/// Reads a PTX file. Without an error in the diagnostics there is a module.
pub fn parse(source: &str) -> (Option<Module>, Vec<Diagnostic>) {
    read(source, true)
}

/// Reads a PTX file of any bytes; what is not ASCII is an error.
pub fn parse_bytes(source: &[u8]) -> (Option<Module>, Vec<Diagnostic>) {
    parse(&String::from_utf8_lossy(source))
}

/// Reads a PTX file without holding its instructions against the tables: only what is no PTX at all is an error.
pub fn check_syntax(source: &str) -> Vec<Diagnostic> {
    read(source, false).1
}

fn read(source: &str, check_rows: bool) -> (Option<Module>, Vec<Diagnostic>) {
    if source.len() > MAX_SOURCE {
        return (None, vec![Diagnostic::fatal("PTX input is larger than 1 GiB")]);
    }
    let (tokens, diags) = lexer::lex(source);
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        diags,
        module: empty(),
        names: Default::default(),
        body: Default::default(),
        check_rows,
        target_row: None,
        inputs: Vec::new(),
    };
    parser.file();
    parser.diags.sort_by_key(|d| d.pos);
    let good = !parser.has_errors();
    (good.then_some(parser.module), parser.diags)
}

fn empty() -> Module {
    Module {
        version: (0, 0),
        target: Target {
            name: String::new(),
            pos: Default::default(),
            independent_textures: false,
            debug: false,
            map_f64_to_f32: false,
        },
        address_size: 64,
        symbols: PrimaryMap::new(),
        globals: Vec::new(),
        functions: PrimaryMap::new(),
        files: Vec::new(),
        debug_sections: Vec::new(),
        pragmas: Vec::new(),
        aliases: Vec::new(),
    }
}
