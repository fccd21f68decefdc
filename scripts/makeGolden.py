"""Golden fixtures for `tessera-engine verify`, of any shape, from a reference of its own: the dense Qwen3.5 text model in
PyTorch (1.13 or newer; nothing else is needed), written from the published equations with the recurrent delta rule, each
example computed alone and never packed, fp32 as transformers' fixtures are.

  python3 scripts/makeGolden.py OUT [--seed 7] [--config '{"linear_num_value_heads": 6}'] [--lengths 7,64,1,65]
                                [--dtype F32|F16|BF16] [--nested] [--shards 2]
  build/tessera-engine verify --fixture OUT

--config overrides the tiny default's fields; --nested writes the multimodal checkpoints' names; --shards splits the
weights over several files. Loss, logits and gradients agree to the contract's limits for every shape. The eight AdamW
steps are chaotic for models of this size (the first step moves each weight by its gradient's sign), so a seed whose
losses also differ between fp32 and fp64 here says nothing about an engine.
"""

import argparse
import json
import math
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

TINY = {
    'vocab_size': 512,
    'hidden_size': 64,
    'intermediate_size': 160,
    'num_hidden_layers': 4,
    'num_attention_heads': 4,
    'num_key_value_heads': 2,
    'head_dim': 32,
    'rms_norm_eps': 1e-6,
    'tie_word_embeddings': True,
    'linear_conv_kernel_dim': 4,
    'linear_key_head_dim': 16,
    'linear_value_head_dim': 16,
    'linear_num_key_heads': 2,
    'linear_num_value_heads': 4,
    'rope_theta': 1e7,
    'partial_rotary_factor': 0.25,
}
DTYPES = {'F32': torch.float32, 'F16': torch.float16, 'BF16': torch.bfloat16, 'I32': torch.int32}
ADAMW = {'lr': 1e-3, 'betas': [0.9, 0.95], 'eps': 1e-8, 'weight_decay': 0.1, 'clip': 1.0}


def rms_norm(x, weight, eps):
    """Over the last axis; `weight` is the whole scale (1 + w where the model stores it zero-centred)."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def l2_norm(x):
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)


class Model:
    """`weights` by their names in the checkpoint; every forward takes one example's [T] ids or [T, H] rows."""

    def __init__(self, config, prefix):
        self.c = config
        self.prefix = prefix
        self.weights = {}
        self._draw()

    def _add(self, name, *shape, scale=None, centre=0.0):
        scale = 0.6 / math.sqrt(shape[-1]) if scale is None else scale
        self.weights[name] = centre + scale * torch.randn(*shape)

    def _draw(self):
        c = self.c
        hidden, mlp = c['hidden_size'], c['intermediate_size']
        heads, kv_heads, dim = c['num_attention_heads'], c['num_key_value_heads'], c['head_dim']
        value_heads, value_dim = c['linear_num_value_heads'], c['linear_value_head_dim']
        values = value_heads * value_dim
        channels = 2 * c['linear_num_key_heads'] * c['linear_key_head_dim'] + values
        self._add(f'{self.prefix}embed_tokens.weight', c['vocab_size'], hidden, scale=0.15)
        for n, kind in enumerate(c['layer_types']):
            layer = f'{self.prefix}layers.{n}.'
            self._add(layer + 'input_layernorm.weight', hidden, scale=0.1)
            self._add(layer + 'post_attention_layernorm.weight', hidden, scale=0.1)
            if kind == 'linear_attention':
                at = layer + 'linear_attn.'
                self._add(at + 'in_proj_qkv.weight', channels, hidden)
                self._add(at + 'in_proj_z.weight', values, hidden)
                self._add(at + 'in_proj_b.weight', value_heads, hidden)
                self._add(at + 'in_proj_a.weight', value_heads, hidden)
                self._add(at + 'conv1d.weight', channels, 1, c['linear_conv_kernel_dim'], scale=0.4)
                self.weights[at + 'A_log'] = torch.log(0.5 + 7.5 * torch.rand(value_heads))
                self._add(at + 'dt_bias', value_heads, scale=1.0)
                self._add(at + 'norm.weight', value_dim, scale=0.1, centre=1.0)
                self._add(at + 'out_proj.weight', hidden, values)
            else:
                at = layer + 'self_attn.'
                self._add(at + 'q_proj.weight', heads * 2 * dim, hidden)
                self._add(at + 'k_proj.weight', kv_heads * dim, hidden)
                self._add(at + 'v_proj.weight', kv_heads * dim, hidden)
                self._add(at + 'o_proj.weight', hidden, heads * dim)
                self._add(at + 'q_norm.weight', dim, scale=0.1)
                self._add(at + 'k_norm.weight', dim, scale=0.1)
            self._add(layer + 'mlp.gate_proj.weight', mlp, hidden)
            self._add(layer + 'mlp.up_proj.weight', mlp, hidden)
            self._add(layer + 'mlp.down_proj.weight', hidden, mlp)
        self._add(f'{self.prefix}norm.weight', hidden, scale=0.1)
        if not c['tie_word_embeddings']:
            self._add('lm_head.weight', c['vocab_size'], hidden)

    def linear(self, x, name):
        return x @ self.weights[name + '.weight'].T

    def delta_rule(self, x, at):
        c, w = self.c, self.weights
        length = x.shape[0]
        key_heads, value_heads = c['linear_num_key_heads'], c['linear_num_value_heads']
        key_dim, value_dim = c['linear_key_head_dim'], c['linear_value_head_dim']
        keys, values = key_heads * key_dim, value_heads * value_dim

        inputs = self.linear(x, at + 'in_proj_qkv')
        gate = self.linear(x, at + 'in_proj_z').view(length, value_heads, value_dim)
        beta = torch.sigmoid(self.linear(x, at + 'in_proj_b'))
        decay = -torch.exp(w[at + 'A_log']) * F.softplus(self.linear(x, at + 'in_proj_a') + w[at + 'dt_bias'])

        taps = w[at + 'conv1d.weight'][:, 0]
        before = torch.cat([torch.zeros(taps.shape[1] - 1, inputs.shape[1]), inputs])
        mixed = F.silu(sum(before[j : j + length] * taps[:, j] for j in range(taps.shape[1])))
        query = l2_norm(mixed[:, :keys].view(length, key_heads, key_dim)) / math.sqrt(key_dim)
        key = l2_norm(mixed[:, keys : 2 * keys].view(length, key_heads, key_dim))
        value = mixed[:, 2 * keys :].view(length, value_heads, value_dim)
        query, key = (t.repeat_interleave(value_heads // key_heads, 1) for t in (query, key))

        state = torch.zeros(value_heads, key_dim, value_dim)
        outputs = []
        for t in range(length):
            state = state * decay[t].exp()[:, None, None]
            read = (state * key[t][:, :, None]).sum(1)
            state = state + key[t][:, :, None] * (beta[t][:, None] * (value[t] - read))[:, None, :]
            outputs.append((state * query[t][:, :, None]).sum(1))
        normed = rms_norm(torch.stack(outputs), w[at + 'norm.weight'], c['rms_norm_eps']) * F.silu(gate)
        return self.linear(normed.reshape(length, values), at + 'out_proj')

    def attention(self, x, at):
        c, w = self.c, self.weights
        length, heads, kv_heads, dim = x.shape[0], c['num_attention_heads'], c['num_key_value_heads'], c['head_dim']
        query, gate = self.linear(x, at + 'q_proj').view(length, heads, 2 * dim).split(dim, -1)
        key = self.linear(x, at + 'k_proj').view(length, kv_heads, dim)
        value = self.linear(x, at + 'v_proj').view(length, kv_heads, dim)
        query = self.rotate(rms_norm(query, 1 + w[at + 'q_norm.weight'], c['rms_norm_eps']))
        key = self.rotate(rms_norm(key, 1 + w[at + 'k_norm.weight'], c['rms_norm_eps']))
        key, value = (t.repeat_interleave(heads // kv_heads, 1) for t in (key, value))
        scores = torch.einsum('thd,shd->hts', query, key) / math.sqrt(dim)
        future = torch.ones(length, length).triu(1).bool()
        mixed = torch.einsum('hts,shd->thd', scores.masked_fill(future, -math.inf).softmax(-1), value)
        return self.linear((mixed * torch.sigmoid(gate)).reshape(length, heads * dim), at + 'o_proj')

    def rotate(self, x):
        rotary = int(self.c['head_dim'] * self.c['partial_rotary_factor'])
        frequency = self.c['rope_theta'] ** (-torch.arange(0, rotary, 2).float() / rotary)
        angle = torch.arange(x.shape[0])[:, None].float() * frequency
        cos, sin = (torch.cat([f(angle)] * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        turned, rest = x[..., :rotary], x[..., rotary:]
        half = torch.cat([-turned[..., rotary // 2 :], turned[..., : rotary // 2]], -1)
        return torch.cat([turned * cos + half * sin, rest], -1)

    def logits(self, ids):
        """[T] ids of one example -> [T, vocabulary]"""
        w, eps = self.weights, self.c['rms_norm_eps']
        x = w[f'{self.prefix}embed_tokens.weight'][ids]
        for n, kind in enumerate(self.c['layer_types']):
            layer = f'{self.prefix}layers.{n}.'
            y = rms_norm(x, 1 + w[layer + 'input_layernorm.weight'], eps)
            if kind == 'linear_attention':
                x = x + self.delta_rule(y, layer + 'linear_attn.')
            else:
                x = x + self.attention(y, layer + 'self_attn.')
            y = rms_norm(x, 1 + w[layer + 'post_attention_layernorm.weight'], eps)
            gated = F.silu(self.linear(y, layer + 'mlp.gate_proj')) * self.linear(y, layer + 'mlp.up_proj')
            x = x + self.linear(gated, layer + 'mlp.down_proj')
        x = rms_norm(x, 1 + w[f'{self.prefix}norm.weight'], eps)
        return self.linear(x, f'{self.prefix}embed_tokens' if self.c['tie_word_embeddings'] else 'lm_head')


def draw_stream(lengths, vocabulary):
    """Random ids [sum(lengths)] and their labels: shifted, about half unsupervised, an example's last position always."""
    ids = torch.randint(vocabulary, (sum(lengths),))
    labels = torch.full_like(ids, -100)
    start = 0
    for length in lengths:
        inside = torch.arange(start, start + length - 1)
        chosen = inside[torch.rand(len(inside)) < 0.55]
        labels[chosen] = ids[chosen + 1]
        start += length
    if (labels >= 0).sum() == 0:
        raise SystemExit('no supervised position; give an example of at least two tokens, or another seed')
    return ids, labels


def losses(model, lengths, ids, labels):
    """Mean loss over the supervised positions, logits [T, V], loss of each position [T]"""
    logits = torch.cat([model.logits(part) for part in ids.split(lengths)])
    nll = F.cross_entropy(logits, labels, reduction='none', ignore_index=-100)
    return nll.sum() / (labels >= 0).sum(), logits, nll


def train(model, lengths, ids, labels, steps=8):
    parameters = list(model.weights.values())
    optimizer = torch.optim.AdamW(
        parameters, lr=ADAMW['lr'], betas=ADAMW['betas'], eps=ADAMW['eps'], weight_decay=ADAMW['weight_decay']
    )
    taken = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = losses(model, lengths, ids, labels)[0]
        loss.backward()
        taken.append(loss.item())
        torch.nn.utils.clip_grad_norm_(parameters, ADAMW['clip'])
        optimizer.step()
    return taken


def save(path, tensors):
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, data = {}, b''
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        raw = (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()
        header[name] = {
            'dtype': names[tensor.dtype],
            'shape': list(tensor.shape),
            'data_offsets': [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    path.write_bytes(struct.pack('<Q', len(text)) + text + data)


def save_model(out, model, weights, nested, shards):
    rope = {'rope_type': 'default', **{key: model.c[key] for key in ('rope_theta', 'partial_rotary_factor')}}
    text = {key: value for key, value in model.c.items() if key not in rope}
    text |= {'hidden_act': 'silu', 'max_position_embeddings': 32768, 'rope_parameters': rope, 'model_type': 'qwen3_5_text'}
    config = {'architectures': ['Qwen3_5ForCausalLM'], **text}
    if nested:
        config = {
            'architectures': ['Qwen3_5ForConditionalGeneration'],
            'model_type': 'qwen3_5',
            'tie_word_embeddings': model.c['tie_word_embeddings'],
            'text_config': text,
        }
    (out / 'config.json').write_text(json.dumps(config, indent=1) + '\n')
    if shards == 1:
        save(out / 'model.safetensors', weights)
        return
    files = [f'model-{n + 1:05d}-of-{shards:05d}.safetensors' for n in range(shards)]
    where = {name: files[i % shards] for i, name in enumerate(weights)}
    for file in files:
        save(out / file, {name: tensor for name, tensor in weights.items() if where[name] == file})
    (out / 'model.safetensors.index.json').write_text(json.dumps({'metadata': {}, 'weight_map': where}, indent=1) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=Path)
    parser.add_argument('--seed', type=int, default=7)
    parser.add_argument('--config', type=json.loads, default={})
    parser.add_argument('--lengths', default='7,64,1,65,23,130,2')
    parser.add_argument('--dtype', choices=['F32', 'F16', 'BF16'], default='F32')
    parser.add_argument('--nested', action='store_true')
    parser.add_argument('--shards', type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    config = {**TINY, **options.config}
    config.setdefault(
        'layer_types',
        ['linear_attention' if (n + 1) % 4 else 'full_attention' for n in range(config['num_hidden_layers'])],
    )
    config['num_hidden_layers'] = len(config['layer_types'])
    lengths = [int(length) for length in options.lengths.split(',')]
    model = Model(config, 'model.language_model.' if options.nested else 'model.')
    stored = {name: tensor.to(DTYPES[options.dtype]) for name, tensor in model.weights.items()}
    model.weights = {name: tensor.float().requires_grad_() for name, tensor in stored.items()}
    ids, labels = draw_stream(lengths, config['vocab_size'])

    loss, logits, nll = losses(model, lengths, ids, labels)
    loss.backward()
    gradients = {name: tensor.grad.clone() for name, tensor in model.weights.items()}
    norms = {name: gradient.norm().item() for name, gradient in gradients.items()}
    starts = torch.tensor([0, *lengths]).cumsum(0)

    options.out.mkdir(parents=True, exist_ok=True)
    save_model(options.out, model, stored, options.nested, options.shards)
    save(
        options.out / 'expected.safetensors',
        {
            **{f'grad.{name}': gradient for name, gradient in gradients.items()},
            'logits': logits,
            'nll': nll,
            'cu_seqlens': starts.int(),
            'input_ids': ids.int(),
            'labels': labels.int(),
        },
    )
    expected = {
        'loss': loss.item(),
        'supervised_tokens': int((labels >= 0).sum()),
        'grad_norm': math.hypot(*norms.values()),
        'lengths': lengths,
        'grad_norms': norms,
        'adamw': {**ADAMW, 'all_params_decayed': True, 'losses': train(model, lengths, ids, labels)},
    }
    (options.out / 'expected.json').write_text(json.dumps(expected, indent=1) + '\n')


main()
