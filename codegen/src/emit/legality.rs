//! Emits `legality.rs`: operations, recipes, rules, the matrix expanded to double words as
//! published, and for each instruction name the operations it may belong to, with the columns on
//! which one of them is illegal.

use super::{bytes, camel, phf_map, plain_enum};
use crate::model::Model;
use crate::model::instructions::{Pattern, Wording};
use crate::model::legality::{COLUMNS, Legality, Verdict};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The rule of a cell whose column is not a target.
const NO_RULE: u16 = u16::MAX;

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let legality = &model.legality;
    let names = |names: Vec<&String>| names.iter().map(|n| (camel(n), n.to_string())).collect::<Vec<_>>();
    let recipes = plain_enum(
        "Recipe",
        "How an operation that the target has no instruction for is made of others.",
        &names(legality.recipes.iter().map(|r| &r.name).collect()),
    );
    let (infos, operations) = (recipe_infos(legality), operations(legality));
    let (rules, matrix) = (rules(model), matrix(legality));
    let ids: Vec<_> = legality.operations.iter().map(|o| (o.op.clone(), o.id.to_string())).collect();
    let map = phf_map("OPERATION_BY_NAME", "Position in OPERATIONS by name.", quote!(u16), &ids);
    let instructions = instructions(model);
    quote! { #recipes #infos #operations #rules #matrix #map #instructions }
}

fn recipe_infos(legality: &Legality) -> TokenStream {
    let count = legality.recipes.len();
    let rows = legality.recipes.iter().map(|r| {
        let (class, at, what, handler) = (r.class, &r.phase, &r.what, r.kind == "handler");
        let ops = r.ops.split_whitespace();
        quote!(RecipeInfo { class: #class, handler: #handler, phase: #at, what: #what, variants: &[#(#ops),*] })
    });
    quote! {
        /// Recipes, by [`Recipe`].
        pub static RECIPES: [RecipeInfo; #count] = [#(#rows),*];
    }
}

fn operations(legality: &Legality) -> TokenStream {
    let count = legality.operations.len();
    let rows = legality.operations.iter().map(|o| {
        let (name, family, forms, min_ptx, status, src) = (&o.op, &o.family, &o.forms, &o.min_ptx, &o.status, &o.src);
        let built = o.state == "built";
        quote!(Operation { name: #name, family: #family, forms: #forms, min_ptx: #min_ptx, built: #built, status: #status, source: #src })
    });
    quote! {
        /// The operations of the matrix, in the order of their ids.
        pub static OPERATIONS: [Operation; #count] = [#(#rows),*];
    }
}

fn rules(model: &Model) -> TokenStream {
    let legality = &model.legality;
    let count = legality.rules.len();
    let rows = legality.rules.iter().map(|rule| {
        let (on, verdict, status, src) = (&rule.row.on, &rule.row.verdict, &rule.row.status, &rule.row.src);
        let (_, said) = rule.ops.first().map_or((0, None), |o| (o.0, Some(&o.1)));
        let opcodes = match said {
            Some(Verdict::Native(ops)) => ops.iter().map(|o| format_ident!("{}", model.ori.ops[*o].row.op)).collect(),
            _ => Vec::new(),
        };
        let refusal = match said {
            Some(Verdict::Illegal(wordings)) => wordings.iter().map(wording).collect(),
            _ => Vec::new(),
        };
        quote!(Rule { on: #on, verdict: #verdict, native: &[#(Op::#opcodes),*], refusal: &[#(#refusal),*], status: #status, source: #src })
    });
    quote! {
        /// The rules, in the order of their tables.
        pub static RULES: [Rule; #count] = [#(#rows),*];
    }
}

fn wording(wording: &Wording) -> TokenStream {
    let text = &wording.text;
    let words = wording.words.iter().map(|words| quote!(&[#(#words),*]));
    quote!(Wording { words: &[#(#words),*], text: #text })
}

/// The operations of each instruction name of `tables/ptx`.
fn instructions(model: &Model) -> TokenStream {
    let (legality, ptx) = (&model.legality, &model.ptx);
    let named = |name: &str| {
        let is = |n: &String| n.strip_prefix('%').unwrap_or(n) == name;
        let patterns = legality.patterns.iter().filter(|(_, _, p)| p.names.iter().any(is));
        let patterns: Vec<(usize, &Pattern)> = patterns.map(|(_, op, pattern)| (*op, pattern)).collect();
        let illegal = patterns.iter().fold(0, |bits, (op, _)| bits | illegal(legality, *op));
        let patterns = patterns.iter().map(|(op, pattern)| self::pattern(*op as u16, pattern));
        quote!(Named { illegal: #illegal, patterns: &[#(#patterns),*] })
    };
    let count = ptx.operations.len();
    let known = ptx.operations.iter().map(|o| named(&o.op));
    let planned: Vec<_> = ptx.planned.iter().map(|o| (o.op.clone(), named(&o.op).to_string())).collect();
    let planned = phf_map("PLANNED", "What instructions are that have no forms yet, by name.", quote!(Named), &planned);
    let specials = legality.patterns.iter().flat_map(|(_, _, p)| p.names.iter().filter_map(|n| n.strip_prefix('%')));
    let specials: Vec<_> = specials.map(|name| (name.to_string(), named(name).to_string())).collect();
    let specials = phf_map(
        "SPECIALS",
        "What special registers are, by name, of a vector without its element.",
        quote!(Named),
        &specials,
    );
    quote! {
        /// The operations of instructions, by PTX operation.
        static KNOWN: [Named; #count] = [#(#known),*];
        #planned
        #specials
    }
}

/// The columns of real targets on which an operation is illegal.
fn illegal(legality: &Legality, op: usize) -> u128 {
    let refuses = |column: &usize| {
        let said = legality.cells[op][*column].and_then(|rule| legality.said(rule, op));
        matches!(said, Some(Verdict::Illegal(_)))
    };
    (0..COLUMNS).filter(refuses).fold(0, |bits, column| bits | 1 << column)
}

fn pattern(operation: u16, pattern: &Pattern) -> TokenStream {
    let words = pattern.words.iter().map(|w| {
        let (nth, absent, words) = (option(w.nth), w.absent, &w.words);
        quote!(Words { nth: #nth, absent: #absent, words: &[#(#words),*] })
    });
    let (operands, register, pair) = (option(pattern.operands), option(pattern.register), option(pattern.pair));
    quote!(Pattern { operation: #operation, words: &[#(#words),*], operands: #operands, register: #register, pair: #pair })
}

fn option<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    value.map_or(quote!(None), |value| quote!(Some(#value)))
}

/// The double word of a verdict; the legend is in `src/tables/legality.rs`.
fn word(legality: &Legality, verdict: &Verdict) -> u32 {
    let number = |recipe: usize, variant: usize| legality.recipes[recipe].class << 8 | variant as u32;
    match verdict {
        Verdict::Native(_) => 0,
        Verdict::Inline(recipe, variant) => number(*recipe, *variant),
        Verdict::Handler(recipe, variant) => 0x0100_0000 | number(*recipe, *variant),
        Verdict::Illegal(_) => 0x0800_0000,
    }
}

fn matrix(legality: &Legality) -> TokenStream {
    let cell = |op: usize, column: usize| {
        let rule = legality.cells[op][column];
        let verdict = rule.and_then(|r| legality.said(r, op));
        (verdict.map_or(0x0800_0000, |v| word(legality, v)), rule.map_or(NO_RULE, |r| r as u16))
    };
    let count = legality.operations.len();
    let rows: Vec<Vec<(u32, u16)>> = (0..count).map(|o| (0..COLUMNS).map(|c| cell(o, c)).collect()).collect();
    let words = rows.iter().map(|row| bytes(&row.iter().flat_map(|c| c.0.to_le_bytes()).collect::<Vec<_>>()));
    let numbers = rows.iter().map(|row| bytes(&row.iter().flat_map(|c| c.1.to_le_bytes()).collect::<Vec<_>>()));
    quote! {
        /// The cells as double words.
        static CELLS: [Numbers32; #count] = [#(Numbers32(#words)),*];
        /// The rule of each cell, by position in RULES.
        static CELL_RULES: [Numbers16; #count] = [#(Numbers16(#numbers)),*];
    }
}
