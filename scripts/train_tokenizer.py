"""Train the minis' tokenizer on the corpora and write their token ids. Cost: seconds."""

from stateatlas.job import job

with job(snakemake) as run:
    from stateatlas import packing, tokenization
    from stateatlas.corpora import SPLITS, file

    texts = {split: [t for corpus in run.input.corpora for t in file.read(corpus, split, "text")] for split in SPLITS}
    tokenizer = tokenization.train(texts["train"], run.cfg["vocabulary"])
    tokenization.save(tokenizer, run.output.tokenizer)
    packing.save(run.output.tokens, {split: tokenization.encode(tokenizer, texts[split]) for split in SPLITS})
