//! Emits `lowering.rs`: matrix multiplications and the fragment layouts of `wmma`.

use super::ptx::ident;
use super::{camel, constant};
use crate::model::Model;
use crate::model::lowering::{Conditions, Modifier, Narrow, Product, Tile};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let products = model.lowering.products.iter().map(|p| product(model, p));
    let tiles = model.lowering.tiles.iter().map(|t| tile(model, t));
    let narrow = model.lowering.narrow.iter().map(|n| self::narrow(model, n));
    let (count, fragments) = (model.lowering.products.len(), model.lowering.tiles.len());
    let formats = model.lowering.narrow.len();
    let map_fields = model.lowering.map_fields.iter().map(|row| {
        let (field, index, rank, at) = (&row.field, row.index, row.rank, row.at);
        let (bits, shift, less) = (row.bits, row.shift, row.less);
        quote!(MapField { field: #field, index: #index, rank: #rank, at: #at, bits: #bits, shift: #shift, less: #less })
    });
    let map_types = model.lowering.map_types.iter().map(|(row, ty)| {
        let (number, name, bits, code, rounding) = (row.number, &row.name, row.bits, row.code, row.rounding);
        let ty = match ty {
            Some(ty) => {
                let name = ident(&model.ptx.types[*ty].name);
                quote!(Some(ScalarType::#name))
            }
            None => quote!(None),
        };
        quote!(MapType { number: #number, name: #name, ty: #ty, bits: #bits, code: #code, rounding: #rounding })
    });
    let (field_count, type_count) = (model.lowering.map_fields.len(), model.lowering.map_types.len());
    quote! {
        /// Matrix multiplications, in table order.
        pub static PRODUCTS: [Product; #count] = [#(#products),*];
        /// Fragment layouts of `wmma`.
        pub static TILES: [Tile; #fragments] = [#(#tiles),*];
        /// Floats of 8 bits and fewer.
        pub static NARROW: [Narrow; #formats] = [#(#narrow),*];
        /// Fields of a tensor map.
        pub static MAP_FIELDS: [MapField; #field_count] = [#(#map_fields),*];
        /// Types of the elements of a tensor map.
        pub static MAP_TYPES: [MapType; #type_count] = [#(#map_types),*];
    }
}

fn shape(model: &Model, text: usize) -> TokenStream {
    let group = model.ptx.groups.iter().find(|g| g.row.group == "matrix_shape");
    let name = ident(group.map_or("", |g| &g.texts[text].text));
    quote!(MatrixShape::#name)
}

fn conditions(model: &Model, list: &Conditions) -> TokenStream {
    let list = list.iter().map(|(feature, holds)| {
        let name = format_ident!("{}", camel(&model.targets.features[*feature].name));
        quote!((Feature::#name, #holds))
    });
    quote!(&[#(#list),*])
}

fn product(model: &Model, p: &Product) -> TokenStream {
    let (op, shape) = (ident(&model.ptx.operations[p.op].op), shape(model, p.shape));
    let types = p.types.iter().map(|ty| ident(&model.ptx.types[*ty].name));
    let bit = match p.bit {
        None => quote!(None),
        Some(text) => {
            let group = model.ptx.groups.iter().find(|g| g.row.group == "bit_op");
            let name = ident(group.map_or("", |g| &g.texts[text].text));
            quote!(Some(BitOp::#name))
        }
    };
    let (needs, way) = (conditions(model, &p.conditions), format_ident!("{}", format!("{:?}", p.way)));
    let inst = format_ident!("{}", model.ori.ops[p.inst].row.op);
    let mods = p.mods.iter().map(|one| modifier(model, *one));
    let ([d, a, b], swap) = (p.frag, p.swap);
    let steps = p.steps.iter().map(|[d, a, b]| quote!([#d, #a, #b]));
    quote! { Product {
        op: PtxOp::#op, shape: #shape, types: &[#(ScalarType::#types),*], bit: #bit, needs: #needs, way: Way::#way,
        inst: Op::#inst, mods: &[#(#mods),*], frag: [#d, #a, #b], steps: &[#(#steps),*], swap: #swap,
    } }
}

/// A modifier kind and its value.
pub fn modifier(model: &Model, (kind, value): Modifier) -> TokenStream {
    let kind = &model.ori.kinds[kind];
    let (name, module) = (format_ident!("{}", camel(&kind.name)), format_ident!("r#{}", kind.name));
    let value = format_ident!("{}", constant(&kind.values[value]));
    quote!((Mod::#name, value::#module::#value))
}

fn narrow(model: &Model, n: &Narrow) -> TokenStream {
    let [ty, wide] = [n.ty, n.wide].map(|ty| ident(&model.ptx.types[ty].name));
    let [made, read] = [n.made, n.read].map(|one| modifier(model, one));
    quote!(Narrow { ty: ScalarType::#ty, wide: ScalarType::#wide, made: #made, read: #read })
}

fn tile(model: &Model, t: &Tile) -> TokenStream {
    let (part, types, rows, per) = (t.part, t.types, t.rows, t.per);
    let (shape, needs) = (shape(model, t.shape), conditions(model, &t.conditions));
    let tiles = t.tiles.iter().map(|(x, y)| quote!((#x, #y)));
    quote! { Tile {
        part: #part, shape: #shape, types: #types, needs: #needs, rows: #rows, per: #per, tiles: &[#(#tiles),*],
    } }
}
