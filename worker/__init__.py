"""The work: a supervisor that claims runs and keeps them safe, a trainer that computes, a dispatcher that hands out."""
